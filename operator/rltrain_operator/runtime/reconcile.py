"""One visit to a job: see, plan, do, say. Level-triggered: what led to the visit doesn't matter."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rltrain_operator.plan import (
    OWN_FIELDS,
    ChildJob,
    ChildKey,
    JobView,
    Observed,
    Plan,
    Refusal,
    make_plan,
    says_little,
    to_text,
    to_time,
)
from rltrain_operator.render import Object, OperatorConfig, Served
from rltrain_operator.runtime.api import Api, ApiError
from rltrain_operator.runtime.cache import Cache, Key
from rltrain_operator.runtime.carry_out import Executor, JobGone, NamespaceEnds
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.kinds import JOB, PRIORITY_CLASS, TRAINING_JOB, Kind, resource_flavors
from rltrain_operator.runtime.look import look
from rltrain_operator.runtime.metrics import Metrics
from rltrain_operator.runtime.posting import Poster

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Shortest time between two looks at one job's pods."""
LITTLE_SECONDS = 2.0
"""How long little news, such as one more pod that is ready, may wait: more is mostly near."""


@dataclass
class Reconciler:
    """Visits jobs."""

    api: Api
    cache: Cache
    config: OperatorConfig
    executor: Executor
    poster: Poster
    metrics: Metrics
    discovery: Discovery
    _looked: dict[str, float] = field(default_factory=dict)
    _withheld: dict[str, float] = field(default_factory=dict)
    _uids: dict[Key, str] = field(default_factory=dict)

    async def visit(self, key: Key) -> float | None:
        """Bring a job closer to what it should be; seconds until the next visit, if one is needed."""
        view = self.cache.view(key)
        self._forget_predecessor(key, view)
        if view is None or view.deleting:
            return None
        served = self.discovery.served
        try:
            return await self._visit(key, view)
        except NamespaceEnds as error:
            logger.info("%s", error, extra=_about(view))
            own = tuple(job for job in self.cache.children(key) if job.owner == view.uid)
            await self.executor.carry_out(view, Plan(delete=own))
            return None
        except JobGone as error:
            logger.info("the job went away: %s", error, extra=_about(view))
            # Or a scheduler did, with the kind of a child.
            await self.discovery.look_again()
            return None if self.discovery.served == served else 0.0

    async def _visit(self, key: Key, view: JobView) -> float | None:
        token = secrets.token_hex(32)
        token_since = self.executor.token_since.get(view.uid)
        seen = Observed(
            now=datetime.now(UTC),
            jobs=self.cache.children(key),
            quiet_for=self.cache.quiet_for(key),
            applied=self.executor.applied.get(view.uid, {}),
            token_since=None if token_since is None else to_time(token_since),
            served=self.discovery.served,
            workload=self.cache.workload(key),
        )
        plan = make_plan(view, seen, self.config, token)
        if plan.needs:
            seen = await self._found(seen, plan.needs)
            plan = make_plan(view, seen, self.config, token)
        if plan.needs_pods:
            if (wait := self._wait_to_look(view)) > 0:
                return wait
            seen = replace(seen, pods=await look(self.api, view, seen.jobs))
            plan = make_plan(view, seen, self.config, token)
        refusals = seen.refusals or await self.executor.carry_out(view, plan)
        if refusals:
            for refusal in refusals:
                logger.info("%s %s: %s", refusal.kind, refusal.name, refusal.message, extra=_about(view))
            plan = make_plan(view, replace(seen, refusals=refusals), self.config, token)
        elif made := tuple(_as_seen(child, seen.now) for child in plan.apply if child["kind"] == JOB.name):
            # The word about what was made, at once: the next visit would have it to say in another write.
            then = make_plan(view, replace(seen, jobs=(*seen.jobs, *made)), self.config, token)
            if then.status is not None:
                plan = replace(plan, status=then.status, events=then.events, again_in=then.again_in)
        if (wait := self._wait_to_tell(view, plan)) > 0:
            return wait
        await self._say(view, plan)
        if plan.remove:
            await self._remove(view)
        if seen.jobs and self.executor.token_since.get(view.uid) != token_since:
            # Whether the pods have it is for another visit to see.
            return 0.0
        if plan.look_around:
            await self.discovery.look_again()
            if self.discovery.served != seen.served:
                return 0.0
        return plan.again_in

    async def _found(self, seen: Observed, keys: Sequence[ChildKey]) -> Observed:
        """The same with objects of the whole cluster, or with the word that they may not be read."""
        found: dict[ChildKey, Object | None] = {}
        for kind, name in keys:
            try:
                found[kind, name] = await self.api.get(_cluster_wide(kind, seen.served), None, name)
            except ApiError as error:
                if error.code == 403:
                    return replace(seen, refusals=(Refusal(kind, name, 403, error.message),))
                if error.code != 404:
                    raise
                found[kind, name] = None
        return replace(seen, found=found)

    async def _remove(self, view: JobView) -> None:
        try:
            await self.api.delete(TRAINING_JOB, view.namespace, view.name, view.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        logger.info("deleted, for its time after the end is over", extra=_about(view))

    async def _say(self, view: JobView, plan: Plan) -> None:
        if plan.status is None:
            return
        # Costs the API server less than an apply. All of ours is in it, and none of the driver's progress.
        fields = {"status": {name: plan.status.get(name) for name in OWN_FIELDS}}
        try:
            written = await self.api.patch(
                TRAINING_JOB, view.namespace, view.name, view.uid, fields, subresource="status"
            )
        except ApiError as error:
            if error.code == 404:
                raise JobGone(error.message) from error
            raise
        self.metrics.told(view, plan.status, datetime.now(UTC))
        self.cache.training_jobs.see(written)
        logger.info("state %s", plan.status["state"], extra=_about(view))
        await self.poster.post(view, plan.events)

    def _wait_to_tell(self, view: JobView, plan: Plan) -> float:
        if plan.status is None or not says_little(view, plan.status):
            self._withheld.pop(view.uid, None)
            return 0.0
        now = asyncio.get_running_loop().time()
        wait = self._withheld.setdefault(view.uid, now) + LITTLE_SECONDS - now
        if wait <= 0:
            del self._withheld[view.uid]
        return wait

    def _wait_to_look(self, view: JobView) -> float:
        now = asyncio.get_running_loop().time()
        wait = self._looked.get(view.uid, float("-inf")) + LOOK_SECONDS - now
        if wait <= 0:
            self._looked[view.uid] = now
        return wait

    def _forget_predecessor(self, key: Key, view: JobView | None) -> None:
        """Drop what is remembered of the job that had this name before."""
        uid = None if view is None else view.uid
        before = self._uids.get(key)
        if before is not None and before != uid:
            self.executor.forget(before)
            self._looked.pop(before, None)
            self._withheld.pop(before, None)
            del self._uids[key]
        if uid is not None:
            self._uids[key] = uid


def _as_seen(child: Object, now: datetime) -> ChildJob:
    """A Job as it is once it is made."""
    return ChildJob({**child, "metadata": {**child["metadata"], "creationTimestamp": to_text(now)}})


def _cluster_wide(kind: str, served: Served) -> Kind:
    return PRIORITY_CLASS if kind == PRIORITY_CLASS.name else resource_flavors(served.kueue or "")


def _about(view: JobView) -> dict[str, str]:
    return {"job": f"{view.namespace}/{view.name}", "uid": view.uid}
