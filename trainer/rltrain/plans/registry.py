"""Plans by name, with the actors that each needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rltrain.api.names import LEARNERS, REPLAY, ROLLOUTS, WORKERS, RoleName
from rltrain.flow import LocalIterator
from rltrain.models.agents import Roster
from rltrain.ops import Result
from rltrain.plans.apex import apex
from rltrain.plans.apex_classic import apex_classic
from rltrain.plans.cql import cql
from rltrain.plans.ddppo import ddppo
from rltrain.plans.dqn import dqn
from rltrain.plans.off_policy import off_policy
from rltrain.replay.buffer import Buffer
from rltrain.replay.make import make_buffer


@dataclass(frozen=True)
class Plan:
    """A plan and what the runtime must bring for it.

    Attributes:
        build: makes the dataflow of a `PlanContext`, an `ApexContext` where it is sharded.
        roles: whose machines its actors take, its workers' first; the manifest's blocks of those names say how many.
        ranks: its actors learn together, as one process group, rather than sample for the driver.
        sharded: its replay buffer is actors, and its learner runs beside the driver.
        replay: makes, out of config, seed and the roster of several agents, the buffer that the runtime hands in.
    """

    build: Callable[[Any], LocalIterator[Result]]
    roles: tuple[RoleName, ...]
    ranks: bool = False
    sharded: bool = False
    replay: Callable[[Any, int, Roster | None], Buffer[Any]] | None = None


PLANS: Final[dict[str, Plan]] = {
    "Apex": Plan(apex, roles=(ROLLOUTS, REPLAY, LEARNERS), sharded=True),
    "ApexClassic": Plan(apex_classic, roles=(ROLLOUTS,), sharded=True),
    "CQL": Plan(cql, roles=(), replay=make_buffer),
    "DDPPO": Plan(ddppo, roles=(WORKERS,), ranks=True),
    "DQN": Plan(dqn, roles=(ROLLOUTS,)),
    "OffPolicy": Plan(off_policy, roles=(ROLLOUTS,), replay=make_buffer),
}
