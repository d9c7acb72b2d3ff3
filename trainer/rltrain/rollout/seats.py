"""Seats: the rows of several agents in the batches that their policies act on."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from rltrain.models.agents import Roster
from rltrain.models.packing import PackedBox
from rltrain.models.spaces import Space, action_mapping
from rltrain.rollout.acting import Actor, Acts
from rltrain.rollout.vector import as_given
from rltrain.state import Array, State


class ActTogether(Protocol):
    """What acts for several agents, such as a `PolicyGroup`."""

    @property
    def policies(self) -> Mapping[str, Acts]:
        """By name, as in the roster."""

    @property
    def roster(self) -> Roster:
        """Which agents each of them acts for."""


class Seats:
    """A policy's agents in several environments: a row for each agent of each environment, taken or not.

    Attributes:
        agents: of an environment, in the order of their rows.
        obs: (rows, *shape), what to act on next where the row is taken; something older elsewhere.
        taken: bool (rows,), whether the agent is to act.
    """

    def __init__(self, roster: Roster, policy: str, num_envs: int) -> None:
        self.agents: Sequence[str] = roster.agents[policy]
        space = roster.obs_spaces[policy]
        rows = num_envs * len(self.agents)
        # Rows that nobody has taken yet are something that the policy can take, too.
        self.obs = np.repeat(np.asarray(_some_obs(space), space.dtype)[None], rows, axis=0)
        self.taken = np.zeros(rows, bool)

    def of(self, env: int) -> slice:
        """An environment's rows."""
        return slice(env * len(self.agents), (env + 1) * len(self.agents))

    def look(self, env: int, obs: Mapping[str, Array]) -> None:
        """Take the seats of an environment's agents that are to act, and leave the others'."""
        first = self.of(env).start
        for row, agent in enumerate(self.agents, first):
            self.taken[row] = agent in obs
            if agent in obs:
                self.obs[row] = obs[agent]


class GroupActor:
    """Policies at work in some environments with several agents.

    Args:
        seats: of each policy.
        explore: act as training does, rather than best.
    """

    def __init__(self, group: ActTogether, seats: Mapping[str, Seats], *, explore: bool) -> None:
        self._seats = seats
        self._actors = {
            name: Actor(policy, len(seats[name].obs), explore=explore) for name, policy in group.policies.items()
        }
        self._spaces = group.roster.action_spaces
        self._to_env = {name: action_mapping(space) for name, space in self._spaces.items()}
        self._chosen: dict[str, Sequence[Any]] = {}

    def act(self) -> dict[str, tuple[Array, dict[str, Array]]]:
        """Of each policy its actions, and more columns to keep with them; rows that aren't taken mean nothing."""
        acted = {name: actor.act(self._seats[name].obs) for name, actor in self._actors.items()}
        for name, (actions, _) in acted.items():
            self._chosen[name] = as_given(self._spaces[name], self._to_env[name](actions))
        return acted

    def actions(self, env: int) -> dict[str, Any]:
        """What the agents of an environment do, by the last `act`."""
        found: dict[str, Any] = {}
        for name, seats in self._seats.items():
            rows = seats.of(env)
            mine = zip(seats.agents, seats.taken[rows], self._chosen[name][rows], strict=True)
            found |= {agent: action for agent, taken, action in mine if taken}
        return found

    def begin(self, policy: str, rows: Array) -> None:
        """Agents' episodes begin in these rows of a policy's."""
        self._actors[policy].begin(rows)

    def get_state(self) -> State:
        """What is remembered, by policy."""
        return {name: actor.get_state() for name, actor in self._actors.items()}

    def set_state(self, state: State) -> None:
        """Go on with what was remembered."""
        for name, actor in self._actors.items():
            actor.set_state(state[name])


def _some_obs(space: Space) -> Array:
    """The same each time."""
    whole = copy.deepcopy(space.whole if isinstance(space, PackedBox) else space)
    whole.seed(0)
    obs: Array = whole.sample()
    return space.pack(obs) if isinstance(space, PackedBox) else obs
