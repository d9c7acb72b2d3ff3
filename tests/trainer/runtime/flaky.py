"""Environments that throw."""

import os
import time
from pathlib import Path
from typing import Any

from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from rltrain.rollout.environments import WORKER_INDEX_VARIABLE


class _Crashing:
    """Crashes at its step `at`, or as it is made, `times` times in all, in one worker or in every one."""

    def __init__(self, folder: str, times: int, worker: int | None = None, at: int = 5) -> None:
        super().__init__()
        self._crashes = Path(folder) / "crashes"
        self._times = times
        self._mine = worker is None or os.environ[WORKER_INDEX_VARIABLE] == str(worker)
        self._at = at
        self._step = 0
        self._crash_perhaps()

    def step(self, action: Any) -> Any:
        self._step += 1
        self._crash_perhaps()
        return super().step(action)  # type: ignore[misc]

    def _crash_perhaps(self) -> None:
        if self._mine and self._step == self._at:
            crashed = self._crashes.stat().st_size if self._crashes.exists() else 0
            if crashed < self._times:
                with self._crashes.open("a") as file:
                    file.write("x")
                raise RuntimeError("the game crashed")


class Flaky(_Crashing, CartPoleEnv):
    """CartPole that crashes."""


class FlakyPendulum(_Crashing, PendulumEnv):
    """A pendulum that crashes; what its class lacks, and its id adds, is the end of an episode."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, self._step >= 20, info


class Broken(CartPoleEnv):
    """Can't be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


class HangingPendulum(PendulumEnv):
    """Pendulum whose every step hangs."""

    def step(self, action: Any) -> Any:
        time.sleep(3600)
