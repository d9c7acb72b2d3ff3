"""Probe environments, each made for one question."""

import os
import sys
import time
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Info = dict[str, Any]
Floats = NDArray[np.float32]
CLOCK = spaces.Box(0.0, np.inf, (2,), np.float32)


class Const(gymnasium.Env[Floats, np.int64]):
    """Reward 1 for ever on a circle of 10 places, cut after one round: V is 1 / (1 - gamma) if bootstrapped."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Floats, Info]:
        super().reset(seed=seed)
        self._t = 0
        return self._obs(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, Info]:
        self._t += 1
        return self._obs(), 1.0, False, self._t == 10, {}

    def _obs(self) -> Floats:
        angle = 2 * np.pi * self._t / 10
        return np.array([np.cos(angle), np.sin(angle)], np.float32)


class Count(gymnasium.Env[Floats, np.int64]):
    """Observation [episode, t] in one reused array, reward = global step: shows any row that isn't a transition."""

    observation_space = CLOCK
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 7, terminate: bool = True) -> None:
        self._length, self._terminate = length, terminate
        self._obs = np.array([-1, 0], np.float32)
        self._step = 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Floats, Info]:
        super().reset(seed=seed)
        self._obs += [1, 0]
        self._obs[1] = 0
        return self._obs, {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, Info]:
        self._obs[1] += 1
        self._step += 1
        ended = bool(self._obs[1] == self._length)
        return self._obs, float(self._step), ended and self._terminate, ended and not self._terminate, {}


class Short(gymnasium.Env[Floats, np.int64]):
    """Episodes of 1 to 5 steps, of a length drawn at the reset: as many ends as there can be."""

    observation_space = CLOCK
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Floats, Info]:
        super().reset(seed=seed)
        self._t, self._length = 0, int(self.np_random.integers(1, 6))
        return self._obs(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, Info]:
        self._t += 1
        return self._obs(), 1.0, self._t == self._length, False, {}

    def _obs(self) -> Floats:
        return np.array([self._length, self._t], np.float32)


class Bad(gymnasium.Env[Any, np.int64]):
    """Misbehaves in one way at one step of some episodes of one worker: gives NaN or float64, raises, or hangs.

    Observation [r, t / 20] with r of the episode's seed alone, reward r: shows rows of different episodes taken as one.
    Step 0 is the reset; of the episodes one in `every` is bad, by its seed.
    """

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(
        self,
        kind: Literal["reward", "observation", "float64", "shape", "raise", "exit", "die", "hang"],
        step: int = 3,
        worker: int = 0,
        every: int = 1,
    ) -> None:
        self._kind, self._at, self._every = kind, step, every
        self._mine = worker == int(os.environ["RLTRAIN_WORKER_INDEX"])

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        super().reset(seed=seed)
        number = int(self.np_random.integers(1 << 20))
        self._bad, self._r = self._mine and number % self._every == 0, number / (1 << 20)
        self._t = 0
        return self._obs(), {}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, Info]:
        self._t += 1
        obs = self._obs()
        reward = np.nan if self._kind == "reward" and self._bad_now() else self._r
        return obs, reward, False, self._t == 20, {}

    def _bad_now(self) -> bool:
        return self._bad and self._t == self._at

    def _obs(self) -> Any:
        kind = self._kind if self._bad_now() else None
        if kind == "raise":
            raise RuntimeError("this probe raises")
        if kind == "exit":
            sys.exit(0)
        if kind == "die":
            os._exit(7)
        if kind == "hang":
            time.sleep(3600)
        odd = {
            "observation": np.full(2, np.nan, np.float32),
            "float64": np.full(2, 0.1),
            "shape": np.zeros(3, np.float32),
        }
        return odd.get(str(kind), np.array([self._r, self._t / 20], np.float32))


class Slow(Const):
    """Each step takes a while."""

    def __init__(self, seconds: float = 0.1) -> None:
        self._seconds = seconds

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, Info]:
        time.sleep(self._seconds)
        return super().step(action)


class Spaces(gymnasium.Env[Any, Any]):
    """Any spaces, by name from `SPACES` or as objects; fails when an action isn't contained."""

    def __init__(self, obs: "str | spaces.Space[Any]" = "unit", act: "str | spaces.Space[Any]" = "two") -> None:
        self.observation_space = SPACES[obs] if isinstance(obs, str) else obs
        self.action_space = SPACES[act] if isinstance(act, str) else act
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._t = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} isn't in {self.action_space}")
        self._t += 1
        self.actions.append(action)
        return self.observation_space.sample(), 1.0, False, self._t == 10, {}


class Identity(gymnasium.Env[np.int64, np.int64]):
    """Reward 1 for the action that equals the observation; 100 steps: learnt in seconds or not at all."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[np.int64, Info]:
        super().reset(seed=seed)
        self._t, self._state = 0, self.np_random.integers(4)
        return self._state, {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, Info]:
        reward = float(action == self._state)
        self._t, self._state = self._t + 1, self.np_random.integers(4)
        return self._state, reward, False, self._t == 100, {}


class Recall(gymnasium.Env[np.int64, np.int64]):
    """Shows 0 or 1 once, then twice 2; reward 1 for naming it at last: without a memory 1/2 is the most there is."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[np.int64, Info]:
        super().reset(seed=seed)
        self._t, self._shown = 0, self.np_random.integers(2)
        return self._shown, {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, Info]:
        self._t += 1
        over = self._t == 3
        return np.int64(2), float(over and action == self._shown), over, False, {}


SPACES: dict[str, spaces.Space[Any]] = {
    "unit": spaces.Box(-1.0, 1.0, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "float64": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    "integers": spaces.Box(-5, 5, (2,), np.int32),
    "scalar": spaces.Box(-1.0, 1.0, (), np.float32),
    "two": spaces.Discrete(2),
    "from minus one": spaces.Discrete(3, start=-1),
    "multi": spaces.MultiDiscrete([2, 3]),
    "multi from five": spaces.MultiDiscrete([2, 3], start=[5, -5]),
    "multi 2d": spaces.MultiDiscrete(np.array([[2], [2]])),
    "bits": spaces.MultiBinary(3),
    "skewed box": spaces.Box(np.array([0.0, -5.0], np.float32), np.array([1.0, 3.0], np.float32)),
    "endless box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "half box": spaces.Box(np.array([0.0, -np.inf], np.float32), np.array([np.inf, 1.0], np.float32)),
    "double box": spaces.Box(-2.0, 2.0, (1, 2), np.float64),
    "dict": spaces.Dict({"a": spaces.Discrete(2)}),
    "tuple": spaces.Tuple([spaces.Discrete(2)]),
    "text": spaces.Text(3),
    "text in a dict": spaces.Dict({"a": spaces.Text(3)}),
    "parts": spaces.Dict(
        {
            "image": spaces.Box(0, 255, (9, 8, 2), np.uint8),
            "pair": spaces.Tuple([spaces.Discrete(3, start=-1), spaces.Box(-np.inf, np.inf, (2, 1), np.float64)]),
            "bits": spaces.MultiBinary(2),
        }
    ),
    "images": spaces.Tuple([spaces.Box(0, 255, (2, 2, 1), np.uint8), spaces.Box(0, 255, (3,), np.uint8)]),
}
"""Awkward spaces by name, so that a manifest's kwargs can ask for them."""
