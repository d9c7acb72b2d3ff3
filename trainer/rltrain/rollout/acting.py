"""Actor: a policy at work in some environments; a recurrent one's state goes from step to step here."""

from typing import Protocol

import numpy as np

from rltrain.policies.base import RecurrentPolicy
from rltrain.rollout.columns import NEXT_STATE
from rltrain.state import Array, State


class Acts(Protocol):
    """What chooses actions: a policy, or chance."""

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        """See `Policy`."""


class Actor:
    """A policy in environments that are stepped together, one a row.

    Args:
        rows: environments.
        explore: act as training does, rather than best.
    """

    def __init__(self, policy: Acts, rows: int, *, explore: bool) -> None:
        self._policy, self._rows, self._explore = policy, rows, explore
        self._recurrent = policy if isinstance(policy, RecurrentPolicy) else None
        self._state = None if self._recurrent is None else self._recurrent.initial_state(rows)

    def act(self, obs: Array) -> tuple[Array, dict[str, Array]]:
        """The policy's actions for observations (rows, *shape), and more columns to keep with them."""
        if self._recurrent is None:
            return self._policy.compute_actions(obs, explore=self._explore)
        actions, columns = self._recurrent.compute_actions(obs, explore=self._explore, state=self._state)
        # A copy, which `begin` may change: the state before may be among the columns.
        self._state = np.array(columns[NEXT_STATE])
        return actions, {name: column for name, column in columns.items() if name != NEXT_STATE}

    def begin(self, rows: Array) -> None:
        """Episodes begin in these rows, given as indexes or bool (rows,)."""
        if self._recurrent is not None and self._state is not None:
            self._state[rows] = self._recurrent.initial_state(1)[0]

    def get_state(self) -> State:
        """What is remembered."""
        return {"state": None if self._state is None else self._state.copy()}

    def set_state(self, state: State) -> None:
        """Go on with what was remembered."""
        if self._state is not None:
            self._state = state["state"].copy()
