"""Plans by name, with the actors that each needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rltrain.api.names import ROLLOUTS, WORKERS, RoleName
from rltrain.flow import LocalIterator
from rltrain.ops import PlanContext, Result
from rltrain.plans.ddppo import ddppo
from rltrain.plans.dqn import dqn
from rltrain.plans.off_policy import off_policy
from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.make import make_buffer


@dataclass(frozen=True)
class Plan:
    """A plan and what the runtime must bring for it.

    Attributes:
        build: makes the dataflow.
        role: whose machines its actors take; the manifest's block of that name says how many.
        ranks: its actors learn together, as one process group, rather than sample for the driver.
        replay: makes, out of config and seed, the buffer that the runtime hands in.
    """

    build: Callable[[PlanContext[Any]], LocalIterator[Result]]
    role: RoleName
    ranks: bool = False
    replay: Callable[[Any, int], ReplayBuffer] | None = None


PLANS: Final[dict[str, Plan]] = {
    "DDPPO": Plan(ddppo, role=WORKERS, ranks=True),
    "DQN": Plan(dqn, role=ROLLOUTS),
    "OffPolicy": Plan(off_policy, role=ROLLOUTS, replay=make_buffer),
}
