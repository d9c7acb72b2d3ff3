"""Jobs that are to have no pods, for good reason: each head saves a checkpoint and leaves, then the others do."""

from dataclasses import replace

from rltrain.api import names
from rltrain.api.errors import InvalidManifest
from rltrain.api.status import ConditionType
from rltrain_operator.plan.actions import Plan
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.observed import ChildJob
from rltrain_operator.plan.status import NOT_STARTED
from rltrain_operator.plan.training import has_trained, next_start
from rltrain_operator.plan.visit import ACCEPTED, Visit


def next_to_leave(visit: Visit) -> tuple[ChildJob, ...]:
    """The head first, for its driver saves a checkpoint; then whatever serves it."""
    heads = [job for job in visit.seen.jobs if job.owner == visit.view.uid and job.role == names.HEAD]
    return visit.own if not heads else tuple(job for job in visit.own if job in heads)


def suspend(visit: Visit, problems: InvalidManifest | None) -> Plan:
    """No pods until `suspend` is false again."""
    later = next_start(visit.view)
    if visit.has_jobs:
        resting = Verdict("False", "Suspending", "The driver saves a checkpoint; the pods leave, the head's first.")
    else:
        resting = Verdict("False", "Suspended", f"spec.suspend is true. {later} once it is false.")
    verdicts: dict[ConditionType, Verdict] = {
        **NOT_STARTED,
        "Accepted": ACCEPTED if problems is None else visit.accepted(problems),
        "ClusterReady": Verdict("False", "NoPods", "The job is suspended: it has no pods."),
        "Training": resting,
    }
    return replace(visit.said(verdicts, starting=has_trained(visit.view)), retire=next_to_leave(visit))


def is_to_restart(visit: Visit) -> bool:
    """Its pods aren't what the manifest says, and are to be: at once, or as there is nothing to lose yet."""
    if visit.job is None or not visit.changed or visit.seen.refusals:
        return False
    return visit.job.spec.update_strategy == "Restart" or not has_trained(visit.view)


def restart(visit: Visit) -> Plan:
    """No pods of the former manifest; those of the edited one follow once they are gone."""
    plan = _make_way(visit, "For the edited manifest")
    begins = any(job.role == names.HEAD for job in plan.retire)
    jobs = tuple(child for child in visit.desired if child["kind"] == "Job")
    return replace(plan, rehearse=jobs) if begins else plan


def has_former_token(visit: Visit) -> bool:
    """The Secret with Ray's token was lost and made anew: a pod that came now couldn't join the others."""
    since = visit.seen.token_since
    return since is not None and any(job.created < since for job in visit.own)


def renew_token(visit: Visit) -> Plan:
    """No pods with the former token; others follow once they are gone."""
    return _make_way(visit, "Ray's token was lost and is another now")


def _make_way(visit: Visit, why: str) -> Plan:
    text = f"{why}: the driver saves a checkpoint, the pods leave, and the job goes on from it."
    verdicts: dict[ConditionType, Verdict] = {
        **NOT_STARTED,
        "Accepted": ACCEPTED,
        "ClusterReady": Verdict("False", "NoPods", "The pods leave for others."),
        "Training": Verdict("False", "Restarting", text),
    }
    return replace(visit.said(verdicts, starting=has_trained(visit.view)), retire=next_to_leave(visit))
