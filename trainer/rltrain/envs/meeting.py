"""Two walkers who are paid while they are at the same place."""

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.env import ParallelEnv  # type: ignore[import-untyped]

from rltrain.models.spaces import Space

PLACES = 8
MOVES = (-1, 0, 1)
STEPS = 16


class Meeting(ParallelEnv):  # type: ignore[misc]
    """A circle of 8 places on which two agents, `left` and `right`, may go back, stay or go on for 16 steps.

    Each sees how far on the other is, and gets 1 in every step that ends with both at one place. Going to meet an
    agent that does the same, one may pass it by: what is best for one depends on what the other has learnt.
    """

    metadata = {"name": "meeting"}
    possible_agents = ["left", "right"]

    def observation_space(self, agent: str) -> Space:
        return spaces.Discrete(PLACES)

    def action_space(self, agent: str) -> Space:
        return spaces.Discrete(len(MOVES))

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, int], dict[str, Any]]:
        self.agents = list(self.possible_agents)
        self._t = 0
        # How far on `right` is, as `left` sees it.
        self._apart = int(np.random.default_rng(seed).integers(1, PLACES))
        return self._seen(), {}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        self._t += 1
        self._apart = (self._apart + MOVES[actions["right"]] - MOVES[actions["left"]]) % PLACES
        acted = self.agents
        over = self._t == STEPS
        self.agents = [] if over else acted
        rewards = dict.fromkeys(acted, float(self._apart == 0))
        return self._seen(), rewards, dict.fromkeys(acted, False), dict.fromkeys(acted, over), {}

    def _seen(self) -> dict[str, int]:
        return {"left": self._apart, "right": -self._apart % PLACES}
