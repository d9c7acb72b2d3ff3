"""Environments with several agents that show what happens in them. Imported only where there is one, for PettingZoo."""

from typing import Any

from pettingzoo.utils.wrappers import BaseParallelWrapper  # type: ignore[import-untyped]

from rltrain.api.env import EnvSpec
from rltrain.rollout.filming import Show, frame_of
from rltrain.rollout.parallel_envs import make_parallel_env


class FilmedTogether(BaseParallelWrapper):  # type: ignore[misc]
    """As `Filmed`, of several agents: the frames of an episode's beginning, and after each of its steps."""

    def __init__(self, spec: EnvSpec, show: Show) -> None:
        super().__init__(make_parallel_env(spec))
        self._show = show
        self._begun = False

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self._begun = True
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        if self._begun:
            self._begun = False
            self._show(frame_of(self.env))
        result = self.env.step(actions)
        self._show(frame_of(self.env))
        return result
