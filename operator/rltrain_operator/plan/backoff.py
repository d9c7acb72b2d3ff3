"""The Job controller's patience with heads.

It waits ever longer before it makes another, up to ten minutes, and counts evictions too. Where training gets further
between losses, that is time lost for nothing: such a head's Job is made anew.
"""

from collections.abc import Sequence
from datetime import timedelta

from rltrain.api import names
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.observed import ChildJob, JobView
from rltrain_operator.plan.times import to_time
from rltrain_operator.render import Object

FIRST_WAIT = timedelta(seconds=15)
"""The first wait is 10 s; whatever takes longer than this is a later one."""
_OTHERWISE_HELD_UP = frozenset({"QuotaExceeded", "PodSecurityViolated", "PodsRefused", "ChildRefused"})


def head_in_long_wait(
    view: JobView, jobs: Sequence[ChildJob], cluster: Verdict, unready_for: float | None
) -> ChildJob | None:
    """The head's Job, if only its controller's patience keeps it from a pod, and training has got further in its time.

    Args:
        cluster: what keeps the pods.
        unready_for: seconds since they stopped being ready.
    """
    head = next((job for job in jobs if job.role == names.HEAD), None)
    if head is None or head.finished or head.count("active") or head.count("terminating"):
        return None
    if unready_for is None or unready_for < FIRST_WAIT.total_seconds() or cluster.reason in _OTHERWISE_HELD_UP:
        return None
    saved = view.checkpoint.get("savedAt")
    return head if saved is not None and to_time(saved) > head.created else None


def with_what_is_left(view: JobView, child: Object) -> Object:
    """A Job with the failures of its predecessors taken off those that it may have."""
    spec = child.get("spec", {})
    if not view.restarts or child["kind"] != "Job" or "backoffLimit" not in spec:
        return child
    return {**child, "spec": {**spec, "backoffLimit": max(spec["backoffLimit"] - view.restarts, 0)}}
