"""Watching with kopf: events fill the cache and make a job's key due, and do nothing else.

No finalizers, no annotations, no timers: nothing of ours is ever in an object's way.
"""

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from rltrain.api import names
from rltrain_operator.runtime.api import log_in
from rltrain_operator.runtime.cache import Cache, Key, key_of

Due = Callable[[Key], None]


class Patience:
    """Seconds between the tries of a request, without end: a watch outlives any trouble of the API server."""

    def __iter__(self) -> Iterator[float]:
        return chain((1, 1, 2, 3, 5, 8), repeat(10))


def settings() -> kopf.OperatorSettings:
    """kopf's settings for an operator that only watches."""
    made = kopf.OperatorSettings()
    # It would need to watch CRDs and namespaces, which takes rights over the whole cluster.
    made.scanning.disabled = True
    made.networking.request_timeout = 30
    made.networking.error_backoffs = Patience()
    made.watching.inactivity_timeout = 70
    made.queueing.idle_timeout = 0.5
    made.queueing.exit_timeout = 0.5
    made.posting.enabled = False
    made.peering.standalone = True
    made.persistence.diffbase_storage = _NoDiffs()
    made.persistence.progress_storage = _NoProgress()
    made.process.ultimate_exiting_timeout = None
    return made


class _NoDiffs(kopf.DiffBaseStorage):
    """Nobody asks what has changed: to tell, kopf copies each object several times, most of its work with an event."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None: ...

    def store(self, **_: Any) -> None: ...


class _NoProgress(kopf.ProgressStorage):
    """Handlers that only take an event in have no progress to keep."""

    def fetch(self, **_: Any) -> None: ...

    def store(self, **_: Any) -> None: ...

    def purge(self, **_: Any) -> None: ...

    def touch(self, **_: Any) -> None: ...

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


def registry(cache: Cache, due: Due) -> kopf.OperatorRegistry:
    """The handler of jobs; what belongs to them is followed apart (follow.py)."""
    made = kopf.OperatorRegistry()

    @kopf.on.login(registry=made)
    def credentials(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
        return log_in(settings)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=made)
    async def training_job(event: kopf.RawEvent, **_: Any) -> None:
        found = dict(event["object"])
        cache.training_jobs.take(event["type"], found)
        due(key_of(found))

    return made
