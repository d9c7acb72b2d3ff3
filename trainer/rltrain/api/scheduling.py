"""How the cluster takes a job's pods in: together, in a queue, with a priority, near each other or apart."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rltrain.api.base import Model

Name = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""Of a Kubernetes object."""


class Topology(Model):
    """Where the pods that average gradients go: DD-PPO's workers, or several learners."""

    key: Annotated[str, Field(max_length=317, examples=["kubernetes.io/hostname"])]
    """Label of nodes by which they are in one place, such as `topology.kubernetes.io/zone`."""
    policy: Literal["Pack", "Spread"] = "Pack"
    """All in one place, or evenly over all places."""
    required: bool = False
    """A pod that can't be placed so waits; otherwise it goes elsewhere."""


class Scheduling(Model):
    """Queue, gang, priority and places of the job's pods."""

    gang: Literal["Auto", "None", "Kueue", "Volcano", "Kubernetes"] = "Auto"
    """Who starts pods together. `Auto`: Kueue where `queueName` is given, else Volcano where the cluster has it, else
    Kubernetes itself where it serves PodGroups as beta."""
    queue_name: Name | None = None
    """Kueue's LocalQueue: no pods until it admits the job. With `gang: Volcano`, Volcano's queue."""
    priority_class_name: Name | None = None
    """PriorityClass of all pods, and of the job in its queue."""
    topology: Topology | None = None
    """Where the pods of a collective group go."""

    @property
    def in_kueue(self) -> bool:
        """Whether Kueue decides when there are pods."""
        return self.queue_name is not None and self.gang in ("Auto", "Kueue")

    @model_validator(mode="after")
    def _queue_has_a_keeper(self) -> Self:
        if self.gang in ("None", "Kubernetes") and self.queue_name is not None:
            raise ValueError("queueName needs gang Auto, Kueue or Volcano: nobody else keeps a queue")
        if self.gang == "Kueue" and self.queue_name is None:
            raise ValueError("gang Kueue needs queueName, the LocalQueue of the job's namespace")
        return self
