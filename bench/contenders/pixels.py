"""An environment of images, whose work is all the network's."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

EPISODE_STEPS = 200


class Pixels(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """Four grey frames of 84 x 84, the same few again and again; the reward is for the action that goes with them."""

    observation_space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = spaces.Discrete(4)  # type: ignore[assignment]  # its actions are NumPy integers

    def __init__(self) -> None:
        self._frames = np.random.default_rng(0).integers(0, 256, (16, 84, 84, 4), np.uint8)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._frames[0], {}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        reward = float(int(action) == self._steps % 4)
        self._steps += 1
        return self._frames[self._steps % 16], reward, False, self._steps >= EPISODE_STEPS, {}
