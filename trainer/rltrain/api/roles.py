"""Role blocks: how many pods a role has, what they need, and what the user lays over them."""

from typing import Annotated, Any, Literal

from pydantic import Field

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
    """Rollout workers, one a pod."""


class ApexRolloutsRole(RolloutsRole):
    """Ape-X's rollout workers, each exploring to another degree."""

    replicas: NonNegativeInt = 32
    """Rollout workers, one a pod."""


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
    """Ranks wanted, one a pod."""
    min_replicas: PositiveInt = 1
    """Ranks below which training waits for lost ones to come back."""
    collective: Collective = Collective()
    """The process group."""
