"""Users' callbacks, and an environment with something to tell."""

import os
from typing import Any

import numpy as np

from probes.envs import Info, Short
from rltrain.callbacks import Episode

EPISODES: list[Episode] = []
"""What callbacks of this process were told."""


class Telling(Short):
    """Its infos say how long an episode is; one dict is used for all steps."""

    def __init__(self) -> None:
        self._info: Info = {}

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> Any:
        self._info.clear()
        return super().reset(seed=seed, options=options)

    def step(self, action: np.int64) -> Any:
        obs, reward, terminated, truncated, _ = super().step(action)
        self._info.update(planned=self._length, step=self._t)
        return obs, reward, terminated, truncated, self._info


class Counting:
    def on_episode_end(self, episode: Episode) -> None:
        EPISODES.append(episode)
        episode.custom_metrics["planned"] = episode.info["planned"]
        episode.custom_metrics["process"] = os.getpid()

    def on_train_result(self, result: dict[str, Any]) -> None:
        result["episodes_told"] = len(EPISODES)
        result["not_a_number"] = float("nan")


class Raising:
    def on_episode_end(self, episode: Episode) -> None:
        raise KeyError("success")


class Odd:
    def on_episode_end(self, episode: Episode) -> None:
        episode.custom_metrics["odd"] = float("nan")


class Replacing:
    def on_train_result(self, result: dict[str, Any]) -> None:
        result["counters"].clear()


class Unwritable:
    def on_train_result(self, result: dict[str, Any]) -> None:
        result["object"] = object()


class Misspelt:
    def on_episode_ends(self, episode: Episode) -> None: ...


class Elsewhere:
    def before_learn_on_batch(self, batch: Any) -> Any: ...


class NeedsMore:
    def __init__(self, more: int) -> None: ...


def function() -> None: ...
