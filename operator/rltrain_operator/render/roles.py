"""The roles that a job has, as the pods of each need to be."""

from dataclasses import dataclass

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.api.roles import Role


@dataclass(frozen=True)
class RoleView:
    """One role: its name, how many pods, and what the manifest says of them."""

    name: names.RoleName
    replicas: int
    spec: Role

    @property
    def is_head(self) -> bool:
        return self.name == names.HEAD

    @property
    def args(self) -> list[str]:
        """Arguments of the image's entry point."""
        return ["head"] if self.is_head else ["node"]

    @property
    def port(self) -> int:
        """The port that is open once the pod is of use."""
        return names.GCS_PORT if self.is_head else names.NODE_MANAGER_PORT


def roles(job: RLTrainingJob) -> tuple[RoleView, ...]:
    """The job's roles, head first; one without pods isn't there."""
    blocks = {name: getattr(job.spec, name, None) for name in names.ROLES}
    views = [
        RoleView(name, getattr(block, "replicas", 1), block) for name, block in blocks.items() if block is not None
    ]
    return tuple(view for view in views if view.replicas > 0)
