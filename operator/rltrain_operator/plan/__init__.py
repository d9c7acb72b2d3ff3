"""The planner: from a job and what is there of it, to what to do and what to say. Pure."""

import json
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from rltrain.api import names
from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain_operator.plan import making_way
from rltrain_operator.plan.accept import accept
from rltrain_operator.plan.actions import CREATE_ONLY, Change, Plan, child_key, job_names
from rltrain_operator.plan.backoff import with_what_is_left
from rltrain_operator.plan.clean_up import left_over
from rltrain_operator.plan.conditions import Event
from rltrain_operator.plan.diagnosis import wants_events
from rltrain_operator.plan.observed import ChildJob, ChildKey, JobView, Observed, PodReport, Refusal
from rltrain_operator.plan.queue import Queue, ended, given_back
from rltrain_operator.plan.sizes import followed
from rltrain_operator.plan.status import OWN_FIELDS, says_little
from rltrain_operator.plan.times import to_text, to_time
from rltrain_operator.plan.visit import Visit
from rltrain_operator.plan.workload import Told, Workload
from rltrain_operator.render import Object, OperatorConfig, Served, render, token_secret

__all__ = [
    "CREATE_ONLY",
    "OWN_FIELDS",
    "Change",
    "ChildJob",
    "ChildKey",
    "Event",
    "JobView",
    "Observed",
    "Plan",
    "PodReport",
    "Refusal",
    "Told",
    "Workload",
    "child_key",
    "job_names",
    "make_plan",
    "says_little",
    "to_text",
    "to_time",
    "wants_events",
]


def make_plan(view: JobView, seen: Observed, config: OperatorConfig, token: str) -> Plan:
    """The plan for one visit.

    Args:
        view: the RLTrainingJob.
        seen: its children.
        config: the operator's configuration.
        token: a fresh Ray token, used only if the job has none yet.
    """
    own = tuple(job for job in seen.jobs if job.owner == view.uid and not job.deleting)
    if view.status.get("completionTime"):
        succeeded = view.condition("Succeeded").get("status") == "True"
        return ended(view, seen, _tidy(view, own, seen.now), succeeded=succeeded)
    if seen.pods is not None and seen.pods.namespace_ends:
        # Its pods wait for others, which can't be made any more, or for their Jobs to go.
        return Plan(delete=own)
    seen = replace(seen, served=_as_made(own, seen.served))
    job, desired, problems = _read(view, own, config, token, seen.served)
    visit = Visit(view, seen, own, job, desired)
    if problems is not None and not own:
        return given_back(visit, visit.invalid(problems))
    if head := next((each for each in own if each.role == names.HEAD and each.finished), None):
        return ended(view, seen, visit.finish(head), succeeded=head.complete)
    if view.suspended:
        return given_back(visit, making_way.suspend(visit, problems))
    if making_way.has_former_token(visit):
        return making_way.renew_token(visit)
    if making_way.is_to_restart(visit):
        return making_way.restart(visit)
    if job is not None and visit.past_deadline(job):
        return ended(view, seen, visit.give_up(job), succeeded=False)
    queue = Queue(visit, config, problems)
    if (waiting := queue.plan()) is not None:
        return waiting
    return queue.reported(queue.placed().go_on(problems))


def _read(
    view: JobView, own: tuple[ChildJob, ...], config: OperatorConfig, token: str, served: Served
) -> tuple[RLTrainingJob | None, list[Object], InvalidManifest | None]:
    try:
        job, children = _rendered(json.dumps([view.identity, followed(view, own)]), config, served)
        return job, [token_secret(job, config, token), *(with_what_is_left(view, child) for child in children)], None
    except InvalidManifest as error:
        return None, [], error


@lru_cache(maxsize=128)
def _rendered(text: str, config: OperatorConfig, served: Served) -> tuple[RLTrainingJob, tuple[Object, ...]]:
    """A job is visited a dozen times while it starts, and rendering it takes longer than all the rest."""
    job = accept(*json.loads(text))
    return job, tuple(render(job, config, served=served))


def _as_made(own: tuple[ChildJob, ...], served: Served) -> Served:
    """What of the schedulers is for a job with pods: one that came later isn't, or a new pod would wait for a gang
    that the others aren't in."""
    keeper = next((job.gang for job in own if job.gang is not None), None)
    if keeper is None:
        return served
    volcano, pod_groups = served.volcano and keeper == "Volcano", served.pod_groups if keeper == "Kubernetes" else None
    return replace(served, volcano=volcano, pod_groups=pod_groups)


def _tidy(view: JobView, own: tuple[ChildJob, ...], now: datetime) -> Plan:
    """A finished job stays as it is, with those of its pods that are to be kept."""
    plan = Plan(delete=left_over(view, own))
    if view.ttl_seconds is None:
        return plan
    left = view.ttl_seconds - (now - to_time(view.status["completionTime"])).total_seconds()
    return replace(plan, remove=True) if left <= 0 else replace(plan, again_in=left)
