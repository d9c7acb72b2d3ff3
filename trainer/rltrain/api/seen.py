"""Objects as the API server hands them out, valid or not: what the operator and the command line both read of them."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, as JSON."""


@dataclass(frozen=True)
class Seen:
    """An object as it stands in a cluster."""

    raw: Object

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.raw["metadata"]


@dataclass(frozen=True)
class SeenJob(Seen):
    """An RLTrainingJob."""

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"]["namespace"])


def claim_name(job: str, given: str | None = None) -> str:
    """Name of the volume claim with a job's run directory: the one it was given, or that made for jobs of its name."""
    return given or f"{job}-checkpoints"
