"""What of an edited manifest a job's driver takes up while it runs. Pure."""

from typing import Final

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.runtime.roles import roles_of

_ELASTIC: Final = (names.ROLLOUTS, names.WORKERS)
_TAKEN: Final = ("replicas", "min_replicas", "max_replicas", "autoscale")


def with_edits(job: RLTrainingJob, newer: RLTrainingJob) -> RLTrainingJob:
    """A job with the deadline of a newer edition of it, its number of workers and their bounds; all else as it was."""
    deadline = {"active_deadline_seconds": newer.spec.run_policy.active_deadline_seconds}
    edits: dict[str, object] = {"run_policy": job.spec.run_policy.model_copy(update=deadline)}
    name = next((name for name in roles_of(job) if name in _ELASTIC), None)
    counted = None if name is None else getattr(newer.spec, name, None)
    if name is not None and counted is not None:
        role = getattr(job.spec, name)
        taken = {field: getattr(counted, field) for field in _TAKEN if field in type(role).model_fields}
        edits[name] = role.model_copy(update=taken)
    return job.model_copy(update={"spec": job.spec.model_copy(update=edits)})


def needs_restart(before: int, after: int) -> bool:
    """Between none and some workers only another start of the driver changes: it samples by itself without any."""
    return (before == 0) != (after == 0)
