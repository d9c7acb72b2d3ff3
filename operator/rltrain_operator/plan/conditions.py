"""Conditions: what is said of a job, and when it last changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rltrain.api.status import ConditionType
from rltrain_operator.plan.observed import JobView
from rltrain_operator.plan.times import to_text
from rltrain_operator.render import Object

ORDER: tuple[ConditionType, ...] = ("Accepted", "ClusterReady", "Training", "Succeeded", "Failed")


@dataclass(frozen=True)
class Verdict:
    """A condition without its history."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


Verdicts = Mapping[ConditionType, Verdict]


def conditions(view: JobView, verdicts: Verdicts, now: datetime) -> list[Object]:
    """All conditions, in one order; ``lastTransitionTime`` moves only with the status."""
    made = []
    for kind in ORDER:
        verdict, before = verdicts[kind], view.condition(kind)
        since = before.get("lastTransitionTime") if before.get("status") == verdict.status else None
        made.append(
            {
                "type": kind,
                "status": verdict.status,
                "reason": verdict.reason,
                "message": verdict.message,
                "lastTransitionTime": since or to_text(now),
                "observedGeneration": view.generation,
            }
        )
    return made


@dataclass(frozen=True)
class Event:
    """Something worth telling the people who watch the job."""

    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


_GOOD = {"ClusterReady", "Training", "Succeeded"}
QUIET = {
    "NotStarted",
    "Creating",
    "PodsStarting",
    "WaitingForCluster",
    "Starting",
    "Finishing",
    "Finished",
    "NotFinished",
    "Suspending",
    "NoPods",
    "Resuming",
}
"""Reasons of what simply takes its time, or is told by another condition."""
_WANTED = {"Suspended", "Restarting", "Queued"}
"""Reasons of what somebody has asked for."""


def events(view: JobView, made: list[Object]) -> tuple[Event, ...]:
    """One event for each condition whose status or reason is new and more than waiting."""
    told = []
    for condition in made:
        before = view.condition(condition["type"])
        is_new = (condition["status"], condition["reason"]) != (before.get("status"), before.get("reason"))
        if not is_new or condition["reason"] in QUIET or condition["status"] == "Unknown":
            continue
        if condition["reason"] == "Accepted" and not before:
            continue  # goes without saying; that a manifest has been mended doesn't
        if condition["type"] == "Failed" and condition["status"] == "False":
            continue
        if condition["type"] == "Succeeded" and condition["status"] == "False":
            continue
        good = condition["status"] == ("True" if condition["type"] in {*_GOOD, "Accepted"} else "False")
        good = good or condition["reason"] in _WANTED
        warn = not good or condition["reason"] == "ChangeNeedsRestart"
        told.append(Event("Warning" if warn else "Normal", condition["reason"], condition["message"]))
    return tuple(told)
