"""How long a job may take, how often it is tried again, and what is left of it."""

from typing import Literal

from rltrain.api.base import Model, NonNegativeInt, PositiveInt

CleanUpRule = Literal["AllButHead", "All", "Nothing"]


class CleanUp(Model):
    """Which of a finished job's pods go, each with its Job; what is kept shows its logs."""

    on_success: CleanUpRule = "AllButHead"
    """Once the job has succeeded."""
    on_failure: CleanUpRule = "AllButHead"
    """Once it has failed; `Nothing` leaves pods that still run as they are, for a look into them."""


class RunPolicy(Model):
    """How long the job may take, how often it is tried again, and what is left of it."""

    max_restarts: NonNegativeInt = 3
    """Failures of the head after which the job fails; evictions don't count."""
    startup_deadline_seconds: PositiveInt = 900
    """Longest until the cluster is ready and training begins, kept by the operator."""
    active_deadline_seconds: PositiveInt | None = None
    """Longest that training may take over all attempts, kept by the driver: a failure, unlike `stop.timeSeconds`."""
    ttl_seconds_after_finished: NonNegativeInt | None = None
    """A finished job is deleted after so long, with all but the claim of its checkpoints; kept when not given."""
    clean_up: CleanUp = CleanUp()
    """What of a finished job's pods is deleted at once."""
