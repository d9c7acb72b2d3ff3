"""The operator put together: list, then watch, and visit what is due."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any

import kopf

from rltrain_operator.runtime.api import Api, ApiError, NotLeading, Unreachable
from rltrain_operator.runtime.cache import Cache, Key
from rltrain_operator.runtime.carry_out import Executor
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.election import Lead
from rltrain_operator.runtime.follow import Follower
from rltrain_operator.runtime.health import Health
from rltrain_operator.runtime.kinds import JOB
from rltrain_operator.runtime.look import namespace_ends
from rltrain_operator.runtime.metrics import Levels, Metrics
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
AGAIN_SECONDS = 2.0
"""Until watches that broke begin anew."""
FINISH_SECONDS = 8.0
"""How long the visits under way may take to end; the pod's grace period is longer."""


class Operator:
    """Everything that runs in the operator's process.

    Args:
        own: its settings.
        api: its client, which writes only while ``lead`` says so.
        lead: whether it may act. One that may not watches all the same, and so can begin at once.
        metrics: told of all that happens.
    """

    def __init__(self, own: Settings, api: Api, lead: Lead, metrics: Metrics) -> None:
        self._settings = own
        self._api = api
        self._lead = lead
        self._metrics = metrics
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue(metrics.waited)
        self._discovery = Discovery(api, finds_api_server=own.config.egress is not None)
        executor = Executor(api, self._cache.workloads)
        self._resync = Resync(api, self._cache, executor.applied, self._discovery, own.namespaces)
        poster = Poster(api, own.identity)
        self._reconciler = Reconciler(api, self._cache, own.config, executor, poster, metrics, self._discovery)
        self.health = Health(self._queue.age, self._resync.watch_is_behind)
        metrics.registry.register(Levels(self._cache, self._queue.depth, lead.leads, self.health.watch_lag))
        self._listed, self._acting = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until a part of it breaks.

        Raises:
            BaseExceptionGroup: a part that must run for ever has ended, or the lead is lost.
        """
        told = asyncio.Event()
        _listen(told)
        probes = await self.health.serve(self._settings.host, self._settings.port, self._metrics.registry)
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(self._worker()) for _ in range(self._settings.workers)]
                helpers = [group.create_task(part) for part in self._parts()]
                # The last one: kopf takes all tasks that are made after its start for its own, and cancels them.
                helpers.append(group.create_task(self._watch(told)))
                await told.wait()
                await self._finish(workers)
                for each in (*workers, *helpers):
                    each.cancel()
        finally:
            await probes.cleanup()

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        parts = [self.health.measure(), self._become_ready(), self._stand(), self._act(), self._resync_for_ever()]
        scopes: list[str | None] = list(self._settings.namespaces) or [None]
        for scope in scopes:
            parts.append(Follower(self._api, self._cache.jobs, self._is_due, scope).run(JOB))
            parts.append(Follower(self._api, self._cache.workloads, self._is_due, scope).run_workloads(self._discovery))
        return parts

    async def _watch(self, told: asyncio.Event) -> None:
        """Watch for ever. What has broken the watches is no reason to give a lead away: they begin anew."""
        while True:
            # Before it nothing is visited, for half a picture looks like missing children, and nothing is watched,
            # for kopf finds a kind only if it is there when it starts. It never hears of what was deleted meanwhile.
            await self._list()
            self._listed.set()
            try:
                await self._watch_once(told)
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                logger.warning("the watches were cancelled and begin anew: %s", error)
            except Exception as error:
                logger.warning("the watches broke and begin anew: %s", error, exc_info=True)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _watch_once(self, told: asyncio.Event) -> None:
        own = asyncio.all_tasks()
        namespaces = self._settings.namespaces
        tasks = await kopf.spawn_tasks(
            registry=registry(self._cache, self._is_due),
            settings=settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
        )
        # kopf has set handlers of its own, which would end the watches before the visits.
        _listen(told)
        await kopf.run_tasks(tasks, ignored=own)

    def _is_due(self, key: Key) -> None:
        if self._acting.is_set():
            self._queue.add(key, SETTLE_SECONDS)

    async def _stand(self) -> None:
        await self._listed.wait()
        await self._lead.run()

    async def _act(self) -> None:
        """Begin with everything, once this process leads: the one before may have died in the midst of anything."""
        await self._listed.wait()
        await self._lead.leading.wait()
        await self._list()
        # At once: what is heard from now on makes its job due, and all that there is until now is made so here.
        self._acting.set()
        for key in self._cache.training_jobs.keys():  # noqa: SIM118 - a store, not a mapping
            self._queue.add(key)

    async def _finish(self, workers: list[asyncio.Task[None]]) -> None:
        """Let the visits under way end, and then another lead at once."""
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._queue.drain()
                if self._acting.is_set():
                    await self._leave()
        except (ApiError, Unreachable, NotLeading, TimeoutError) as error:
            logger.warning("not everything was finished: %s", error or "it took too long")
        for worker in workers:
            worker.cancel()
        await self._lead.release()

    async def _leave(self) -> None:
        """Let go of a namespace that ends with this process in it: nobody else would (see NamespaceEnds)."""
        for namespace in self._settings.namespaces:
            if await namespace_ends(self._api, namespace):
                for key in self._cache.jobs.keys():  # noqa: SIM118 - a store, not a mapping
                    job = self._cache.jobs.get(key)
                    if key[0] == namespace and job is not None:
                        await self._api.delete(JOB, *key, job["metadata"]["uid"])

    async def _become_ready(self) -> None:
        """An older definition holds up nothing but the word that all is well, so that an upgrade is seen to fail."""
        await self._listed.wait()
        self.health.reason_not_ready = "the Lease can't be read; the log says why"
        await self._lead.heard.wait()
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

    async def _list(self) -> None:
        """List everything, as often as it takes."""
        while True:
            try:
                await self._resync_once()
                return
            except (ApiError, Unreachable) as error:
                self.health.reason_not_ready = f"listing failed: {error}"
                logger.warning("%s; is the CRD installed, and may this account list?", self.health.reason_not_ready)
                await asyncio.sleep(RETRY_SECONDS)

    async def _resync_once(self) -> None:
        keys = await self._resync.run()
        if self._acting.is_set():
            for key in keys:
                self._queue.add(key)

    async def _resync_for_ever(self) -> None:
        await self._listed.wait()
        wait = self._settings.resync_seconds
        while True:
            await asyncio.sleep(wait)
            try:
                await self._resync_once()
                wait = self._settings.resync_seconds
            except (ApiError, Unreachable) as error:
                logger.warning("the comparison of everything failed: %s", error)
                wait = min(RETRY_SECONDS, self._settings.resync_seconds)

    async def _worker(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            key = await self._queue.get()
            begin, cause = loop.time(), await self._visit(key)
            self._metrics.visited(loop.time() - begin, cause)
            self._queue.done(key, failed=cause is not None)

    async def _visit(self, key: Key) -> str | None:
        """Visit a job; why that failed, in one of the metrics' words."""
        about = {"job": "/".join(key)}
        try:
            again_in = await self._reconciler.visit(key)
        except ApiError as error:
            logger.warning("the visit failed: %s", error, extra=about)
            return "refused"
        except (Unreachable, NotLeading) as error:
            logger.warning("the visit failed: %s", error, extra=about)
            return "unreachable"
        except Exception:
            logger.exception("the visit failed", extra=about)
            return "unexpected"
        if again_in is not None:
            self._queue.add(key, again_in)
        return None


def _listen(told: asyncio.Event) -> None:
    """Have SIGTERM and SIGINT tell it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
