"""Which numbers of a job's manifest its driver takes up while it runs. Pure."""

from typing import Final

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.runtime.roles import roles_of

_ELASTIC: Final = (names.ROLLOUTS, names.WORKERS)
_TAKEN: Final = ("replicas", "min_replicas", "max_replicas", "autoscale")


def with_counts(job: RLTrainingJob, newer: RLTrainingJob) -> RLTrainingJob:
    """A job with as many workers, and within the same bounds, as a newer edition of it says; all else as it was."""
    name = next((name for name in roles_of(job) if name in _ELASTIC), None)
    counted = None if name is None else getattr(newer.spec, name, None)
    if name is None or counted is None:
        return job
    role = getattr(job.spec, name)
    taken = {field: getattr(counted, field) for field in _TAKEN if field in type(role).model_fields}
    spec = job.spec.model_copy(update={name: role.model_copy(update=taken)})
    return job.model_copy(update={"spec": spec})


def needs_restart(before: int, after: int) -> bool:
    """Between none and some workers only another start of the driver changes: it samples by itself without any."""
    return (before == 0) != (after == 0)
