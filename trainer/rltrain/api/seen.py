"""A job as the API server hands it out, valid or not: what the operator and the command line both read of it."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, as JSON."""


@dataclass(frozen=True)
class SeenJob:
    """An RLTrainingJob as it stands in a cluster."""

    raw: Object

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])


def claim_name(job: str, given: str | None = None) -> str:
    """Name of the volume claim with a job's run directory: the one it was given, or that made for jobs of its name."""
    return given or f"{job}-checkpoints"
