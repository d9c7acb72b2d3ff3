"""CartPole of which only the positions are seen."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rltrain.state import Array


class StatelessCartPole(gymnasium.ObservationWrapper[Array, np.int64, Array]):
    """CartPole-v1 without velocities: balancing takes a memory of the positions before.

    Observation: float32 (2,), the cart's position and the pole's angle.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(gymnasium.make("CartPole-v1", disable_env_checker=True, **kwargs))
        full = self.env.observation_space
        assert isinstance(full, spaces.Box)
        self.observation_space = spaces.Box(full.low[[0, 2]], full.high[[0, 2]], dtype=np.float32)

    def observation(self, observation: Array) -> Array:
        return observation[[0, 2]]
