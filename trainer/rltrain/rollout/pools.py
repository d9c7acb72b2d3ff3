"""Environments of envpool, which steps them in threads of its own: ids like `envpool:CartPole-v1`."""

from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from rltrain.api.errors import MissingExtra, UnknownEnvironment
from rltrain.api.nearest import did_you_mean
from rltrain.state import Array

PREFIX: Final = "envpool:"


def make_pool(task: str, num_envs: int, seed: int, **kwargs: Any) -> Any:
    """A pool of environments.

    Raises:
        MissingExtra: envpool isn't installed.
        UnknownEnvironment: it has no such task.
    """
    try:
        import envpool
    except ImportError as error:
        raise MissingExtra(f"environment '{PREFIX}{task}' needs envpool: pip install 'rltrain[envpool]'") from error
    tasks = envpool.list_all_envs()
    if task not in tasks:
        raise UnknownEnvironment(f"envpool has no environment {task!r}{did_you_mean(task, tasks, most=3)}")
    return envpool.make(task, env_type="gymnasium", num_envs=num_envs, seed=seed, **kwargs)


class PoolVector(gymnasium.vector.VectorEnv[Array, Array, Array]):
    """Some environments of a task.

    After an episode's end a pool ignores one action and gives the next episode's first observation with reward 0: what
    gymnasium calls the next-step autoreset mode. It takes a seed only as it is made, so a seeded reset makes another.
    An episode that terminates in the very step of its time limit is told as truncated. Images come with their channels
    last.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, task: str, num_envs: int, **kwargs: Any) -> None:
        self._task, self._kwargs, self.num_envs = task, kwargs, num_envs
        self._pool = make_pool(task, num_envs, seed=0, **kwargs)
        space = self._pool.observation_space
        self._images = isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8
        if self._images:
            space = spaces.Box(0, 255, (*space.shape[1:], space.shape[0]), np.uint8)
        self.single_observation_space, self.single_action_space = space, self._pool.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        if seed is not None:
            self._pool.close()
            self._pool = make_pool(self._task, self.num_envs, seed, **self._kwargs)
        obs, info = self._pool.reset()
        return self._seen(obs), info

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        obs, rewards, terminateds, truncateds, info = self._pool.step(actions.astype(self.single_action_space.dtype))
        return self._seen(obs), rewards, terminateds, truncateds, info

    def close_extras(self, **kwargs: Any) -> None:
        self._pool.close()

    def _seen(self, obs: Array) -> Array:
        return np.moveaxis(obs, 1, -1) if self._images else obs


class PoolEnv(gymnasium.Env[Array, Any]):
    """One of them by itself."""

    def __init__(self, task: str, **kwargs: Any) -> None:
        self._envs = PoolVector(task, 1, **kwargs)
        self.observation_space, self.action_space = self._envs.single_observation_space, self._envs.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        return self._envs.reset(seed=seed)[0][0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, rewards, terminateds, truncateds, _ = self._envs.step(np.asarray(action)[None])
        return obs[0], float(rewards[0]), bool(terminateds[0]), bool(truncateds[0]), {}

    def close(self) -> None:
        self._envs.close()
