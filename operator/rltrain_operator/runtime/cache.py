"""What the watches have shown: jobs and their Jobs, by name."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from rltrain.api import names
from rltrain_operator.plan import ChildJob, JobView, Workload, job_names
from rltrain_operator.render import Object

Key = tuple[str, str]
"""Namespace and name."""


def key_of(made: Object) -> Key:
    return made["metadata"]["namespace"], made["metadata"]["name"]


def version_of(made: Object) -> int:
    """Resource versions of one kind grow; Kubernetes promises so since 1.35."""
    return int(made["metadata"].get("resourceVersion") or 0)


@dataclass
class Store:
    """The newest state of each object of one kind.

    Attributes:
        unread: fields of the spec that nobody reads, which aren't kept: a Job is nine tenths pod template.
        heard_at: time of the watch's last event, in seconds since 1970.
    """

    unread: tuple[str, ...] = ()
    heard_at: float = 0.0
    _objects: dict[Key, Object] = field(default_factory=dict)
    _watched: dict[Key, int] = field(default_factory=dict)
    """Version that the watch has reached, object by object."""
    _changed_at: dict[Key, float] = field(default_factory=dict)

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def keys(self) -> Iterable[Key]:
        return list(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def see(self, made: Object, *, watched: bool = False) -> None:
        """Take an object in, unless a newer state of it is known."""
        key, version = key_of(made), version_of(made)
        if watched:
            self._watched[key] = max(version, self._watched.get(key, 0))
        known = self._objects.get(key)
        if known is None or version_of(known) <= version:
            self._objects[key] = self.slim(made)
            if known is None or version_of(known) < version:
                self._changed_at[key] = time.monotonic()

    def quiet_for(self, key: Key) -> float:
        """Seconds since an object last became another; without end for one that isn't there."""
        return time.monotonic() - self._changed_at.get(key, float("-inf"))

    def slim(self, made: Object) -> Object:
        """What is kept of an object."""
        slim = {**made, "metadata": _without(made["metadata"], ("managedFields",))}
        return {**slim, "spec": _without(made["spec"], self.unread)} if "spec" in made else slim

    def forget(self, key: Key, uid: str | None = None) -> None:
        """Drop an object, or only the one of this UID."""
        known = self._objects.get(key)
        if known is not None and (uid is None or known["metadata"]["uid"] == uid):
            del self._objects[key]
            self._watched.pop(key, None)
            self._changed_at.pop(key, None)

    def take(self, event: str | None, made: Object) -> None:
        """Bring it up to date with a watch's event of this kind."""
        self.heard_at = time.time()
        if event == "DELETED":
            self.forget(key_of(made), made["metadata"]["uid"])
        elif event != "BOOKMARK":
            self.see(made, watched=True)

    def replace(self, listed: list[Object], newest_before: dict[Key, int], *, watched: bool = False) -> list[Object]:
        """Bring the store in line with a list; what was different, and what is gone.

        Args:
            listed: all objects there are.
            newest_before: versions known before the list was asked for: what came after them isn't gone.
            watched: a watch goes on from the list.
        """
        changed = []
        found = {key_of(made) for made in listed}
        for key, version in newest_before.items():
            known = self._objects.get(key)
            if key not in found and known is not None and version_of(known) == version:
                self.forget(key)
                changed.append(known)
        for made in listed:
            known = self._objects.get(key_of(made))
            if known is None or version_of(known) < version_of(made):
                changed.append(made)
            self.see(made, watched=watched)
        return changed

    def versions(self) -> dict[Key, int]:
        return {key: version_of(made) for key, made in self._objects.items()}

    def behind(self, versions: dict[Key, int]) -> set[Key]:
        """Which of these states the watch hasn't brought yet."""
        return {
            key for key, version in versions.items() if key in self._objects and self._watched.get(key, 0) < version
        }


@dataclass
class Cache:
    """All that reconciling reads."""

    training_jobs: Store = field(default_factory=Store)
    jobs: Store = field(default_factory=lambda: Store(unread=("template",)))
    workloads: Store = field(default_factory=lambda: Store(unread=("podSets",)))

    def stores(self) -> dict[str, Store]:
        """All that watches fill, by resource."""
        return {names.PLURAL: self.training_jobs, "jobs": self.jobs, "workloads": self.workloads}

    def view(self, key: Key) -> JobView | None:
        found = self.training_jobs.get(key)
        return None if found is None else JobView(found)

    def children(self, key: Key) -> tuple[ChildJob, ...]:
        """Jobs that carry the names of this job's, head first."""
        namespace, name = key
        found = (self.jobs.get((namespace, child)) for child in job_names(name))
        return tuple(ChildJob(made) for made in found if made is not None)

    def quiet_for(self, key: Key) -> float:
        """Seconds since one of this job's Jobs last became another."""
        namespace, name = key
        return min(self.jobs.quiet_for((namespace, child)) for child in job_names(name))

    def workload(self, key: Key) -> Workload | None:
        """Kueue's Workload of the job's name."""
        found = self.workloads.get(key)
        return None if found is None else Workload(found)


def job_key(child: Object) -> Key | None:
    """Key of the job that a child belongs to, by its label."""
    name = child["metadata"].get("labels", {}).get(names.LABEL_JOB)
    return None if name is None else (child["metadata"]["namespace"], name)


def _without(fields: Object, left_out: tuple[str, ...]) -> Object:
    return {key: value for key, value in fields.items() if key not in left_out}
