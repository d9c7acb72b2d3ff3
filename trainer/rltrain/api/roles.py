"""Role blocks: how many pods a role has, what they need, and what the user lays over them."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rltrain.api.base import Model, NonNegativeInt, PositiveInt, Quantity


class Resources(Model):
    """Requests and limits of a role's container."""

    requests: dict[str, Quantity] = {}
    """What the scheduler sets aside."""
    limits: dict[str, Quantity] = {}
    """What the container may use at most."""


class Role(Model):
    """What every role has."""

    resources: Resources = Resources()
    """Of each pod's container."""
    shared_memory_size: Quantity = "512Mi"
    """Size of /dev/shm, where Ray keeps its objects; counts against the memory limit."""
    template: dict[str, Any] | None = None
    """A pod template (`metadata`, `spec`) laid over the rendered one; containers merge by name, ours is `rltrain`."""


class HeadRole(Role):
    """The pod that runs Ray's control store and the plan's driver."""


class RolloutsRole(Role):
    """Pods that sample; none means that the driver samples by itself."""

    replicas: NonNegativeInt = 0
    """Rollout workers, one a pod; may be changed while the job runs, but not from or to 0."""
    min_replicas: PositiveInt | None = None
    """Fewest that there may be; 1 when not given."""
    max_replicas: PositiveInt | None = None
    """Most that there may be."""
    autoscale: bool = False
    """Begin with `replicas`, and have as many up to `maxReplicas` as the learner has use for."""

    @model_validator(mode="after")
    def _replicas_within_bounds(self) -> Self:
        if self.min_replicas is not None and self.min_replicas > self.replicas:
            raise ValueError(f"minReplicas ({self.min_replicas}) must not exceed replicas ({self.replicas})")
        if self.max_replicas is not None and self.replicas > self.max_replicas:
            raise ValueError(f"maxReplicas ({self.max_replicas}) must not be less than replicas ({self.replicas})")
        if self.autoscale and (self.max_replicas is None or self.replicas == 0):
            raise ValueError("autoscale needs maxReplicas, and replicas of at least 1 to begin with")
        return self


class ApexRolloutsRole(RolloutsRole):
    """Ape-X's rollout workers, each exploring to another degree."""

    replicas: NonNegativeInt = 32
    """Rollout workers, one a pod; may be changed while the job runs, but not from or to 0."""


class ReplayRole(Role):
    """Pods for replay shards; without them the shards are in the head's pod."""

    replicas: NonNegativeInt = 0
    """Pods, over which the shards are spread."""


class LearnersRole(Role):
    """Pods of the learner; without any the learner is a thread of the driver."""

    replicas: Annotated[NonNegativeInt, Field(le=100)] = 0
    """Learners, one a pod; several share each train batch and average gradients: over NCCL with GPUs, else gloo."""


class Collective(Model):
    """How ranks average gradients."""

    backend: Literal["Gloo", "NCCL"] = "Gloo"
    """Gloo for CPUs, NCCL for GPUs."""
    timeout_seconds: PositiveInt = 600
    """Longest that an operation may take before the group is given up."""


class WorkersRole(Role):
    """DD-PPO's ranks, one a pod."""

    replicas: Annotated[PositiveInt, Field(le=1000, examples=["2"])]
    """Ranks wanted, one a pod; may be changed while the job runs."""
    min_replicas: PositiveInt = 1
    """Ranks below which training waits for lost ones to come back."""
    collective: Collective = Collective()
    """The process group."""
