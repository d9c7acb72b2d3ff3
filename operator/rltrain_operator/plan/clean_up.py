"""What of a finished job is deleted."""

from collections.abc import Sequence

from rltrain.api import names
from rltrain_operator.plan.observed import ChildJob, JobView


def left_over(view: JobView, jobs: Sequence[ChildJob]) -> tuple[ChildJob, ...]:
    """Jobs of a finished job that go by its `runPolicy.cleanUp`."""
    failed = view.condition("Failed")
    if failed.get("reason") == "StartupDeadlineExceeded":
        # They never came to anything, and would begin to train once nothing holds them up any more.
        return tuple(jobs)
    return _by_rule(view.clean_up_rule(failed=failed.get("status") == "True"), jobs)


def leaving(view: JobView, jobs: Sequence[ChildJob], *, failed: bool) -> tuple[ChildJob, ...]:
    """The same, but for the head's Job, for a job whose end isn't written down yet: without it there is no end."""
    return tuple(job for job in _by_rule(view.clean_up_rule(failed=failed), jobs) if job.role != names.HEAD)


def _by_rule(rule: str, jobs: Sequence[ChildJob]) -> tuple[ChildJob, ...]:
    if rule == "Nothing":
        return ()
    return tuple(job for job in jobs if rule == "All" or job.role != names.HEAD)
