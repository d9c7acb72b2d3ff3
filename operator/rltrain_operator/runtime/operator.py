"""The operator put together: list, then watch, and visit what is due."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import kopf

from rltrain_operator.runtime.api import Api, ApiError, Unreachable
from rltrain_operator.runtime.cache import Cache, Key
from rltrain_operator.runtime.carry_out import Executor
from rltrain_operator.runtime.health import Health
from rltrain_operator.runtime.kinds import JOB
from rltrain_operator.runtime.look import namespace_ends
from rltrain_operator.runtime.posting import Poster
from rltrain_operator.runtime.reconcile import Reconciler
from rltrain_operator.runtime.resync import Resync
from rltrain_operator.runtime.schema import outdated
from rltrain_operator.runtime.settings import Settings
from rltrain_operator.runtime.watch import registry, settings
from rltrain_operator.runtime.workqueue import WorkQueue

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 0.05
"""A burst of events about one job leads to one visit."""
RETRY_SECONDS = 5.0


class Operator:
    """Everything that runs in the operator's process."""

    def __init__(self, own: Settings, api: Api) -> None:
        self._settings = own
        self._api = api
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue()
        executor = Executor(api)
        self._resync = Resync(api, self._cache, executor.applied, own.namespaces)
        self._reconciler = Reconciler(api, self._cache, own.config, executor, Poster(api, own.identity))
        self.health = Health(self._queue.age, self._resync.watch_is_behind)

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until a part of it breaks.

        Raises:
            BaseExceptionGroup: a part that must run for ever has ended.
        """
        probes = await self.health.serve(self._settings.host, self._settings.port)
        try:
            # Before it nothing is visited, for half a picture looks like missing children, and nothing is watched,
            # for kopf finds a kind only if it is there when it starts.
            await self._list_at_first()
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(part) for part in self._parts()]
                try:
                    await self._watch()
                finally:
                    for helper in helpers:
                        helper.cancel()
            await self._leave()
        finally:
            await probes.cleanup()

    async def _watch(self) -> None:
        """kopf brings its own handling of signals: it returns once the process is to end."""
        namespaces = self._settings.namespaces
        await kopf.operator(
            registry=registry(self._cache, lambda key: self._queue.add(key, SETTLE_SECONDS)),
            settings=settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
        )

    async def _leave(self) -> None:
        """Let go of a namespace that ends with this process in it: nobody else would (see NamespaceEnds)."""
        for namespace in self._settings.namespaces:
            if await namespace_ends(self._api, namespace):
                for key in self._cache.jobs.keys():  # noqa: SIM118 - a store, not a mapping
                    job = self._cache.jobs.get(key)
                    if key[0] == namespace and job is not None:
                        await self._api.delete(JOB, *key, job["metadata"]["uid"])

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        workers = [self._worker() for _ in range(self._settings.workers)]
        return [self.health.measure(), self._become_ready(), self._resync_for_ever(), *workers]

    async def _become_ready(self) -> None:
        """An older definition holds up nothing but the word that all is well, so that an upgrade is seen to fail."""
        while True:
            try:
                reason = await outdated(self._api)
            except (ApiError, Unreachable) as error:
                reason = f"the served definition can't be read: {error}"
            if reason is None:
                self.health.ready.set()
                return
            if reason != self.health.reason_not_ready:
                logger.warning("%s", reason)
            self.health.reason_not_ready = reason
            await asyncio.sleep(RETRY_SECONDS)

    async def _list_at_first(self) -> None:
        while True:
            try:
                await self._resync_once()
                return
            except (ApiError, Unreachable) as error:
                self.health.reason_not_ready = f"the first listing failed: {error}"
                logger.warning("%s; is the CRD installed, and may this account list?", self.health.reason_not_ready)
                await asyncio.sleep(RETRY_SECONDS)

    async def _resync_once(self) -> None:
        for key in await self._resync.run():
            self._queue.add(key)

    async def _resync_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.resync_seconds)
            try:
                await self._resync_once()
            except (ApiError, Unreachable) as error:
                logger.warning("the comparison of everything failed: %s", error)

    async def _worker(self) -> None:
        while True:
            key = await self._queue.get()
            failed = True
            try:
                again_in = await self._reconciler.visit(key)
                failed = False
                if again_in is not None:
                    self._queue.add(key, again_in)
            except (ApiError, Unreachable) as error:
                logger.warning("the visit failed: %s", error, extra={"job": "/".join(key)})
            except Exception:
                logger.exception("the visit failed", extra={"job": "/".join(key)})
            finally:
                self._queue.done(key, failed=failed)
