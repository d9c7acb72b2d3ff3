"""The operator's part of a job's status."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rltrain.api import names
from rltrain_operator.plan.conditions import QUIET, Verdict, Verdicts, conditions
from rltrain_operator.plan.observed import ChildJob, JobView
from rltrain_operator.plan.times import to_text
from rltrain_operator.render import Object

OWN_FIELDS = (
    "state",
    "observedGeneration",
    "startTime",
    "completionTime",
    "conditions",
    "restarts",
    "roles",
    "rollouts",
    "selector",
)

NOT_STARTED: Verdicts = {
    "ClusterReady": Verdict("False", "Creating", "The job's pods are being made."),
    "Training": Verdict("False", "WaitingForCluster", "Training begins once the pods are ready."),
    "Succeeded": Verdict("Unknown", "NotFinished", "The job isn't finished."),
    "Failed": Verdict("Unknown", "NotFinished", "The job isn't finished."),
}


def status(
    view: JobView,
    verdicts: Verdicts,
    jobs: Sequence[ChildJob],
    now: datetime,
    *,
    final: bool = False,
    starting: bool = True,
    restarts: int = 0,
) -> Object:
    """The whole of our fields, ready to apply.

    Args:
        view: the job, with its status so far.
        verdicts: one for each condition.
        jobs: the job's own Jobs.
        now: time of the visit.
        final: nothing will change any more.
        starting: the time in which training must begin is running, or has been in time.
        restarts: failures of a head whose Job is made anew.
    """
    made: Object = {
        "state": state(view, verdicts, jobs),
        "observedGeneration": view.generation,
        "conditions": conditions(view, verdicts, now),
    }
    started = view.status.get("startTime") or (verdicts["Accepted"].status == "True" and to_text(now))
    if started and starting:
        made["startTime"] = started
    if final:
        made["completionTime"] = to_text(now)
    if restarts := view.restarts + restarts:
        made["restarts"] = restarts
    if roles := _roles(view, jobs, final=final):
        made["roles"] = roles
    return made | _scale(view, jobs)


def state(view: JobView, verdicts: Verdicts, jobs: Sequence[ChildJob]) -> str:
    """One word for the printer column."""
    if verdicts["Succeeded"].status == "True":
        return "Succeeded"
    if verdicts["Failed"].status == "True":
        return "Failed"
    if verdicts["Training"].status == "True":
        return "Training"
    if verdicts["Training"].reason in ("Suspending", "Suspended"):
        return "Suspended"
    if verdicts["Training"].reason in ("Queued", "Preempted", "Evicted"):
        return "Pending"
    if verdicts["Training"].reason == "Recovering":
        return "Recovering"
    return "Starting" if view.progress or any(job.count("ready") for job in jobs) else "Pending"


def _roles(view: JobView, jobs: Sequence[ChildJob], *, final: bool) -> list[Object]:
    if not jobs:
        before: list[Object] = view.status.get("roles") or []
        return [{**role, "ready": 0} for role in before]
    return [
        {
            "name": job.role,
            "desired": job.desired,
            "ready": 0 if final else job.count("ready"),
            "failed": job.count("failed"),
        }
        for job in jobs
    ]


def _scale(view: JobView, jobs: Sequence[ChildJob]) -> Object:
    """What `kubectl scale` and autoscalers read of a job that has, or had, rollout pods."""
    job = next((job for job in jobs if job.role == names.ROLLOUTS), None)
    if job is None and "selector" not in view.status:
        return {}
    selector = f"{names.LABEL_JOB_UID}={view.uid},{names.LABEL_ROLE}={names.ROLLOUTS}"
    return {"rollouts": 0 if job is None else job.count("active"), "selector": selector}


def is_same(view: JobView, made: Object) -> bool:
    """Whether the status says all this already."""
    before: Mapping[str, object] = view.status
    return all(before.get(key) == made.get(key) for key in OWN_FIELDS)


def says_little(view: JobView, made: Object) -> bool:
    """Whether nothing has changed that people wait for, such as only how many pods are ready.

    That is: no condition's status, no reason that is told as an event, and no end.
    """

    def gist(status: Mapping[str, object]) -> list[object]:
        conditions: Sequence[Object] = status.get("conditions") or []  # type: ignore[assignment]
        told = [
            (each["type"], each["status"], each["reason"] not in QUIET and each["reason"], each["observedGeneration"])
            for each in conditions
        ]
        return [told, *(status.get(key) for key in ("observedGeneration", "startTime", "completionTime", "restarts"))]

    return gist(view.status) == gist(made)
