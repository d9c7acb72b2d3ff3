"""Stepping several environments as one, with exact transitions."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from rltrain.api.errors import CheckpointMismatch, EnvironmentFailed
from rltrain.api.job import EnvSpec
from rltrain.rollout.environments import Env, Space, VectorEnv, make_env
from rltrain.state import Array, State


class Step(NamedTuple):
    """What one step of all environments gave; rows are environments.

    Attributes:
        next_obs: observations after the action, the final ones where an episode ended.
        rewards: float64; terminateds, truncateds: bool.
        valid: bool, False where the row is no transition but a reset; None if all are.
    """

    next_obs: Array
    rewards: Array
    terminateds: Array
    truncateds: Array
    valid: Array | None


class VectorEnvs(Protocol):
    """Environments that reset themselves when an episode has ended. Arrays may be reused: copy what is kept."""

    num_envs: int
    observation_space: Space
    action_space: Space
    obs: Array
    """Observations to act on, (num_envs, *shape); none before `reset`."""

    def reset(self) -> None:
        """Begin an episode in each environment.

        Raises:
            EnvironmentFailed: an environment raised or returned something of the wrong kind or shape.
        """

    def step(self, actions: Array) -> Step:
        """Take one action in each environment; `obs` is then what to act on next.

        Raises:
            EnvironmentFailed: an environment raised or returned something of the wrong kind or shape.
        """

    def get_state(self) -> State:
        """What `set_state` needs so that no episode's seed comes twice, and open episodes where recorded."""

    def set_state(self, state: State) -> None:
        """Go on from a saved state."""

    def close(self) -> None:
        """Free what the environments hold."""


def episode_seed(seed: int, worker: int, env: int, episode: int) -> int:
    """Seed of one episode's reset, below 2^31."""
    return int(np.random.SeedSequence([seed, worker, env, episode]).generate_state(1)[0] >> 1)


class EnvList:
    """Environments stepped one by one; each episode's reset is seeded by its number.

    Args:
        record: keep the open episodes' actions, so that a saved state can be taken up exactly by doing
            them again. An environment must then be a function of its reset's seed and its actions.
    """

    def __init__(self, spec: EnvSpec, num_envs: int, seed: int, worker: int, record: bool) -> None:
        self.num_envs = num_envs
        self._spec, self._seed, self._worker, self._record = spec, seed, worker, record
        self._envs: list[Env] = [make_env(spec, worker) for _ in range(num_envs)]
        self.observation_space: Space = self._envs[0].observation_space
        self.action_space: Space = self._envs[0].action_space
        space = self.observation_space
        self._shape = space.shape or ()
        self._contains = space.contains if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else None
        self._scalar_actions = isinstance(self.action_space, spaces.Discrete)
        self.obs = np.zeros((num_envs, *self._shape), space.dtype)
        self._next_obs = np.zeros_like(self.obs)
        self._rewards = np.zeros(num_envs)
        self._terminateds = np.zeros(num_envs, bool)
        self._truncateds = np.zeros(num_envs, bool)
        self._episodes = [-1] * num_envs
        self._steps = [0] * num_envs
        self._actions: list[list[Any]] = [[] for _ in range(num_envs)]

    def reset(self) -> None:
        for index in range(self.num_envs):
            self._reset(index)

    def step(self, actions: Array) -> Step:
        each = actions.tolist() if self._scalar_actions else list(actions)
        for index, action in enumerate(each):
            self._step(index, action)
            if self._terminateds[index] or self._truncateds[index]:
                self._reset(index)
            else:
                self.obs[index] = self._next_obs[index]
        return Step(self._next_obs, self._rewards, self._terminateds, self._truncateds, None)

    def get_state(self) -> State:
        open_episodes = [np.asarray(actions, self.action_space.dtype) for actions in self._actions]
        return {"episodes": list(self._episodes), "actions": open_episodes, "obs": self.obs.copy()}

    def set_state(self, state: State) -> None:
        if len(state["episodes"]) != self.num_envs:
            raise CheckpointMismatch(
                f"the saved worker had {len(state['episodes'])} environments, this one {self.num_envs}: "
                "set num_envs_per_worker to the saved number"
            )
        for index, episode in enumerate(state["episodes"]):
            self._episodes[index] = int(episode) - 1 if self._record else int(episode)
            self._reset(index)
            if self._record:
                self._redo(index, state["actions"][index], state["obs"][index])

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _step(self, index: int, action: Any) -> None:
        try:
            obs, reward, terminated, truncated, _ = self._envs[index].step(action)
            self._put(self._next_obs, index, obs)
            self._rewards[index] = reward
            self._terminateds[index] = terminated
            self._truncateds[index] = truncated
            self._steps[index] += 1
        except (Exception, SystemExit) as error:
            raise self._failure(index, error) from error
        if self._record:
            self._actions[index].append(action)

    def _reset(self, index: int) -> None:
        self._episodes[index] += 1
        self._steps[index] = 0
        self._actions[index].clear()
        seed = episode_seed(self._seed, self._worker, index, self._episodes[index])
        try:
            obs, _ = self._envs[index].reset(seed=seed)
            self._put(self.obs, index, obs)
        except (Exception, SystemExit) as error:
            raise self._failure(index, error) from error

    def _redo(self, index: int, actions: Array, obs: Array) -> None:
        for action in actions.tolist() if self._scalar_actions else list(actions):
            self._step(index, action)
            self.obs[index] = self._next_obs[index]
        if not np.array_equal(self.obs[index], obs):
            raise EnvironmentFailed(
                f"environment {self._spec.id!r} isn't a function of its reset's seed and its actions: doing "
                f"an episode's {len(actions)} actions again ended elsewhere, so a serial run can't be resumed"
            )

    def _put(self, target: Array, index: int, obs: Any) -> None:
        if np.shape(obs) != self._shape:
            raise ValueError(f"observation of shape {np.shape(obs)}, the space says {self._shape}")
        if self._contains is not None and not self._contains(obs):
            raise ValueError(f"observation {obs} isn't in {self.observation_space}")
        target[index] = obs

    def _failure(self, index: int, error: BaseException) -> EnvironmentFailed:
        seed = episode_seed(self._seed, self._worker, index, self._episodes[index])
        return EnvironmentFailed(
            f"environment {self._spec.id!r} failed in worker {self._worker}, environment {index}, step "
            f"{self._steps[index]} of its episode {self._episodes[index]} (seed {seed}): "
            f"{type(error).__name__}: {error}"
        )


class NextStepEnvs:
    """A gymnasium vector environment in next-step autoreset mode, its reset rows marked as no transitions.

    After an episode's end such an environment ignores one action and gives the next episode's first
    observation with reward 0: a row that belongs to no episode.
    """

    def __init__(self, envs: VectorEnv, name: str, seed: int, worker: int) -> None:
        self._envs, self._name, self._seed, self._worker = envs, name, seed, worker
        self.num_envs = envs.num_envs
        self.observation_space: Space = envs.single_observation_space
        self.action_space: Space = envs.single_action_space
        self._ended = np.zeros(envs.num_envs, bool)
        self._any_ended = False
        self._resets = -1

    def reset(self) -> None:
        self._resets += 1
        try:
            self.obs, _ = self._envs.reset(seed=episode_seed(self._seed, self._worker, 0, self._resets))
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        self._ended = np.zeros(self.num_envs, bool)
        self._any_ended = False

    def step(self, actions: Array) -> Step:
        try:
            obs, rewards, terminateds, truncateds, _ = self._envs.step(actions)
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        valid = ~self._ended if self._any_ended else None
        self._ended = terminateds | truncateds
        self._any_ended = bool(self._ended.any())
        self.obs = obs
        return Step(obs, rewards, terminateds, truncateds, valid)

    def get_state(self) -> State:
        return {"resets": self._resets}

    def set_state(self, state: State) -> None:
        self._resets = int(state["resets"])
        self.reset()

    def close(self) -> None:
        self._envs.close()

    def _failure(self, error: BaseException) -> EnvironmentFailed:
        return EnvironmentFailed(
            f"environment {self._name!r} ({self.num_envs} as one vector) failed in worker {self._worker}: "
            f"{type(error).__name__}: {error}"
        )
