"""Whether the job trains, as the driver reports it and the head's Job knows it."""

from rltrain.api import names
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.observed import ChildJob, JobView
from rltrain_operator.plan.status import NOT_STARTED
from rltrain_operator.plan.times import to_time

_LEFT = ("Suspending", "Suspended", "Restarting", "Queued", "Preempted", "Evicted", "Resuming")
"""Reasons of a head that was told to leave, and wasn't lost."""


def has_trained(view: JobView) -> bool:
    """Training began in some attempt."""
    if view.progress.get("phase") in ("Training", "Finished") or view.checkpoint:
        return True
    condition = view.condition("Training")
    return condition.get("status") == "True" or condition.get("reason") in ("Recovering", "Resuming")


def next_start(view: JobView) -> str:
    """Where a job without pods begins or goes on, as the first words of a sentence."""
    steps = view.checkpoint.get("envSteps")
    return "It starts" if steps is None else f"It goes on from the checkpoint at {steps} env steps"


def training(view: JobView, jobs: tuple[ChildJob, ...]) -> Verdict:
    """The Training condition of a job that isn't finished. No message holds a number that keeps changing."""
    head = next((job for job in jobs if job.role == names.HEAD), None)
    head_ready = head is not None and head.count("ready") > 0
    phase = None if _is_of_a_former_head(view, head) else view.progress.get("phase")
    if phase == "Finished":
        # The head's pod ends a moment before its Job is complete: nothing was lost.
        return Verdict("True", "Finishing", "The driver is done; its pod is leaving.")
    if head_ready and phase == "Training":
        return Verdict("True", "Training", f"Attempt {view.progress.get('attempt', 1)} is training.")
    if has_trained(view):
        steps = view.checkpoint.get("envSteps")
        place = f"the checkpoint at {steps} env steps" if steps is not None else "the start, there is no checkpoint"
        if view.condition("Training").get("reason") in _LEFT:
            return Verdict("False", "Resuming", f"The next head starts from {place}.")
        lost = "The next head starts" if head_ready else "The head was lost; the next one starts"
        return Verdict("False", "Recovering", f"{lost} from {place}.")
    if phase == "Starting" or head_ready:
        return Verdict("False", "Starting", "The driver is starting.")
    return NOT_STARTED["Training"]


def _is_of_a_former_head(view: JobView, head: ChildJob | None) -> bool:
    """The driver's last report is older than the head's Job: after a resume, or a restart for an edit."""
    told = view.progress.get("updatedAt")
    return told is not None and head is not None and to_time(told) < head.created
