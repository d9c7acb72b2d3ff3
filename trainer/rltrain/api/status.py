"""What the operator and the driver report about a job."""

from typing import Literal

from rltrain.api.base import Model

ConditionType = Literal["Accepted", "ClusterReady", "Training", "Succeeded", "Failed"]
State = Literal["Pending", "Starting", "Training", "Recovering", "Suspended", "Succeeded", "Failed"]


class Condition(Model):
    """A Kubernetes condition."""

    type: str
    """Accepted, ClusterReady, Training, Succeeded or Failed."""
    status: Literal["True", "False", "Unknown"]
    reason: str
    """CamelCase word for programs."""
    message: str
    """A sentence for people: what is the case and what to do about it."""
    last_transition_time: str
    """RFC 3339 time at which `status` last changed."""
    observed_generation: int | None = None
    """Generation of the manifest that this was seen for."""


class RoleStatus(Model):
    """Pods of a role, as its Job counts them."""

    name: str
    desired: int
    ready: int
    failed: int = 0


class Progress(Model):
    """How training goes; written by the driver."""

    phase: Literal["Starting", "Training", "Finished"]
    attempt: int
    """Driver starts so far, this one included."""
    resumed_from_steps: int | None = None
    """Env steps in the checkpoint that this attempt went on from."""
    env_steps: int = 0
    trained_steps: int = 0
    episodes: int = 0
    episode_return_mean: float | None = None
    evaluation_return_mean: float | None = None
    """Of the newest evaluation."""
    steps_per_second: float | None = None
    workers_healthy: int = 0
    workers_wanted: int = 0
    """As the driver has read in the job's manifest last: pods beyond them may go, and nobody misses them."""
    rollouts_proposed: int | None = None
    """With `rollouts.autoscale`: the replicas that suit the learner, once they have been measured.

    Within the bounds and at most one away from `workersWanted`. The driver itself goes by the manifest alone: whoever
    follows the proposal writes it there, as `rollouts.replicas`.
    """
    eta_seconds: float | None = None
    """Seconds to the nearest step or time criterion at the present speed."""
    stop_reason: str | None = None
    updated_at: str
    """RFC 3339."""

    @property
    def steps(self) -> int:
        """How far training is: sampled steps, or trained ones where nothing is sampled."""
        return self.env_steps or self.trained_steps


class CheckpointStatus(Model):
    """The newest whole checkpoint; written by the driver."""

    path: str
    """On the job's volume."""
    env_steps: int
    saved_at: str
    """RFC 3339."""
    best_path: str | None = None
    """The best checkpoint, where one is kept."""
    best_return_mean: float | None = None
    """How good it was found to be."""


class JobStatus(Model):
    """Status subresource of an RLTrainingJob."""

    observed_generation: int | None = None
    state: State | None = None
    """Summary for the printer column."""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] = []
    restarts: int | None = None
    """Failures of heads that the present head's Job doesn't count; they count towards `runPolicy.maxRestarts` too."""
    rollouts: int | None = None
    """Rollout pods that there are, for the scale subresource."""
    selector: str | None = None
    """Which pods those are, as a label selector in one string."""
    roles: list[RoleStatus] = []
    progress: Progress | None = None
    checkpoint: CheckpointStatus | None = None
