"""The vectors that environments bring along, with exact transitions."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rltrain.api.errors import RltrainError
from rltrain.rollout.environments import Space, VectorEnv
from rltrain.rollout.faults import Fault, not_finite
from rltrain.rollout.vector import Step, episode_seed
from rltrain.state import Array, State


class NextStepEnvs:
    """A gymnasium vector environment in next-step autoreset mode, its reset rows marked as no transitions.

    After an episode's end such an environment ignores one action and gives the next episode's first
    observation with reward 0: a row that belongs to no episode.
    """

    def __init__(self, make: Callable[[], VectorEnv], name: str, seed: int, worker: int) -> None:
        self._make, self._name, self._seed, self._worker = make, name, seed, worker
        self._envs = envs = make()
        self.num_envs = envs.num_envs
        self.observation_space: Space = envs.single_observation_space
        self.action_space: Space = envs.single_action_space
        self.faults: list[Fault] = []
        self._ended = np.zeros(envs.num_envs, bool)
        self._any_ended = False
        self._resets = -1
        self._steps = 0

    def reset(self) -> None:
        self._resets += 1
        self._steps = 0
        self._ended = np.zeros(self.num_envs, bool)
        self._any_ended = False
        try:
            self.obs, _ = self._envs.reset(seed=episode_seed(self._seed, self._worker, 0, self._resets))
        except (Exception, SystemExit) as error:
            self._fail(type(error).__name__, f"{type(error).__name__}: {error}")
            return
        for env, _ in not_finite(observation=self.obs):
            self._fail("observation", f"environment {env}'s first observation isn't finite")

    def step(self, actions: Array) -> Step:
        try:
            obs, rewards, terminateds, truncateds, infos = self._envs.step(actions)
        except (Exception, SystemExit) as error:
            self._fail(type(error).__name__, f"{type(error).__name__}: {error}")
            none = np.zeros(self.num_envs, bool)
            return Step(self.obs, np.zeros(self.num_envs), none, none, none)
        valid = ~self._ended if self._any_ended else None
        self._ended = terminateds | truncateds
        self._any_ended = bool(self._ended.any())
        self.obs = obs
        for env, what in not_finite(reward=rewards, observation=obs):
            self._fail(what, f"environment {env}'s {what} isn't finite")
            valid = np.ones(self.num_envs, bool) if valid is None else valid
            valid[env] = False
            rewards, terminateds, truncateds = rewards.copy(), terminateds.copy(), truncateds.copy()
            rewards[env], terminateds[env], truncateds[env] = 0.0, False, False
        self._steps += 1
        ended = np.flatnonzero(self._ended).tolist() if infos else ()
        return Step(obs, rewards, terminateds, truncateds, valid, {env: _info_of(infos, env) for env in ended})

    def restart(self) -> Array:
        self.faults = []
        with contextlib.suppress(Exception, SystemExit):  # it is broken already
            self._envs.close()
        try:
            self._envs = self._make()
        except RltrainError as error:
            self._fail(type(error.__cause__ or error).__name__, str(error))
        else:
            self.reset()
        return np.ones(self.num_envs, bool)

    def get_state(self) -> State:
        return {"resets": self._resets}

    def set_state(self, state: State) -> None:
        self._resets = int(state["resets"])
        self.reset()

    def close(self) -> None:
        self._envs.close()

    def _fail(self, kind: str, cause: str) -> None:
        message = (
            f"environment {self._name!r} ({self.num_envs} as one vector) failed in worker {self._worker}, step "
            f"{self._steps} after its reset {self._resets}: {cause}"
        )
        self.faults.append(Fault(kind, message))


def _info_of(infos: Mapping[str, Any], env: int) -> Mapping[str, Any]:
    """One environment's part of a vector's infos, where `_key` says who has a `key`."""
    own = {key: value for key, value in infos.items() if not key.startswith("_")}
    return {key: value[env] for key, value in own.items() if np.any(infos.get(f"_{key}", ())[env : env + 1])}
