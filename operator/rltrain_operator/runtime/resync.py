"""Comparing everything with what it should be: at the start, and every few minutes."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rltrain.api import names
from rltrain_operator.plan import ChildKey
from rltrain_operator.render import ANNOTATION_HASH
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.cache import Cache, Key, Store
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.kinds import JOB, LISTED, TRAINING_JOB, VOLCANO, Kind, pod_groups, workloads

logger = logging.getLogger(__name__)

OWN_CHILDREN = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"


@dataclass
class Resync:
    """Lists what the watches should have shown, and the children that nothing watches."""

    api: Api
    cache: Cache
    applied: dict[str, dict[ChildKey, str]]
    discovery: Discovery
    namespaces: Sequence[str] = ()
    _expected: list[tuple[Store, dict[Key, int]]] = field(default_factory=list)

    async def run(self) -> set[Key]:
        """Keys of all jobs there are or were."""
        await self.discovery.look()
        keys = set(self.cache.training_jobs.keys())
        self._expected = [(store, await self._watched(kind, store, labels)) for kind, store, labels in self._kinds()]
        await self._children()
        keys |= set(self.cache.training_jobs.keys())
        logger.info("compared everything", extra={"jobs": len(keys), "requests": self.api.requests})
        return keys

    def watch_is_behind(self) -> bool:
        """Whether the watches haven't brought yet what the last list showed."""
        return any(store.behind(versions) for store, versions in self._expected)

    def _kinds(self) -> Iterator[tuple[Kind, Store, str | None]]:
        yield TRAINING_JOB, self.cache.training_jobs, None
        yield JOB, self.cache.jobs, OWN_CHILDREN
        if (version := self.discovery.served.kueue) is not None:
            yield workloads(version), self.cache.workloads, OWN_CHILDREN

    async def _watched(self, kind: Kind, store: Store, labels: str | None) -> dict[Key, int]:
        before = store.versions()
        # Slim at once: the whole of some thousand Jobs would be more memory than the operator has any other use for.
        listed = [
            store.slim(made) for scope in self._scopes() async for made in self.api.list(kind, scope, labels=labels)
        ]
        store.replace(listed, before)
        return store.versions()

    async def _children(self) -> None:
        """Children that are gone or aren't as we applied them are forgotten, and so applied again.

        Secrets and claims can't be listed: they are made anew, which changes nothing where they are.
        """
        found: dict[str, dict[ChildKey, str]] = {}
        before = {uid: set(known) for uid, known in self.applied.items()}
        for kind in self._listed():
            for scope in self._scopes():
                async for child in self.api.list(kind, scope, labels=OWN_CHILDREN, metadata_only=True):
                    metadata = child["metadata"]
                    for owner in metadata.get("ownerReferences", []):
                        mark = metadata.get("annotations", {}).get(ANNOTATION_HASH, "")
                        found.setdefault(owner["uid"], {})[kind.name, metadata["name"]] = mark
        for uid, known in self.applied.items():
            # What was applied while the lists were read isn't in them.
            fresh = {child: mark for child, mark in known.items() if child not in before.get(uid, set())}
            known.clear()
            known.update(found.pop(uid, {}) | fresh)
        living = {
            made["metadata"]["uid"]
            for key in self.cache.training_jobs.keys()  # noqa: SIM118 - a store, not a mapping
            if (made := self.cache.training_jobs.get(key)) is not None
        }
        for uid, known in found.items():
            if uid in living:
                self.applied[uid] = known

    def _listed(self) -> Iterator[Kind]:
        yield from LISTED
        if self.discovery.served.volcano:
            yield VOLCANO
        if (version := self.discovery.served.pod_groups) is not None:
            yield pod_groups(version)

    def _scopes(self) -> Sequence[str | None]:
        return list(self.namespaces) or [None]
