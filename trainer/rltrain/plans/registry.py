"""Plans by name, with the actors that each needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rltrain.api.names import ROLLOUTS, WORKERS, RoleName
from rltrain.flow import LocalIterator
from rltrain.ops import PlanContext, Result
from rltrain.plans.ddppo import ddppo
from rltrain.plans.dqn import dqn


@dataclass(frozen=True)
class Plan:
    """A plan and what the runtime must bring for it.

    Attributes:
        build: makes the dataflow.
        role: whose machines its actors take; the manifest's block of that name says how many.
        ranks: its actors learn together, as one process group, rather than sample for the driver.
    """

    build: Callable[[PlanContext[Any]], LocalIterator[Result]]
    role: RoleName
    ranks: bool = False


PLANS: Final[dict[str, Plan]] = {
    "DDPPO": Plan(ddppo, role=WORKERS, ranks=True),
    "DQN": Plan(dqn, role=ROLLOUTS),
}
