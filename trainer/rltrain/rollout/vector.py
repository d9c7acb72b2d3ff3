"""Stepping several environments as one, with exact transitions."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from rltrain.api.env import EnvSpec
from rltrain.api.errors import CheckpointMismatch, EnvironmentFailed, RltrainError
from rltrain.rollout.environments import Env, Space, make_env
from rltrain.rollout.faults import Fault, all_finite, not_finite
from rltrain.state import Array, State

Infos = Mapping[int, Mapping[str, Any]]
"""What environments said of their last step, by index of the environment."""


class Step(NamedTuple):
    """What one step of all environments gave; rows are environments.

    Attributes:
        next_obs: observations after the action, the final ones where an episode ended.
        rewards: float64; terminateds, truncateds: bool.
        valid: bool, False where the row is no transition but a reset or a failure; None if all are.
        infos: of the episodes that ended.
    """

    next_obs: Array
    rewards: Array
    terminateds: Array
    truncateds: Array
    valid: Array | None
    infos: Infos = {}


class VectorEnvs(Protocol):
    """Environments that reset themselves when an episode has ended. Arrays may be reused: copy what is kept."""

    num_envs: int
    observation_space: Space
    action_space: Space
    obs: Array
    """Observations to act on, (num_envs, *shape); none before `reset`."""
    faults: list[Fault]
    """Of environments that must be made again, by `restart`, before the next step."""

    def reset(self) -> None:
        """Begin an episode in each environment; those that fail are among `faults`."""

    def step(self, actions: Array) -> Step:
        """Take one action in each environment; `obs` is then what to act on next.

        Where an environment fails, in the step or in the reset that follows an episode's end, it is among `faults`,
        and in the former case its row isn't valid.
        """

    def restart(self) -> Array:
        """Make what has failed again, and begin episodes there: in which environments, bool (num_envs,).

        `faults` are then those of these beginnings.
        """

    def get_state(self) -> State:
        """What `set_state` needs so that no episode's seed comes twice, and open episodes where recorded."""

    def set_state(self, state: State) -> None:
        """Go on from a saved state; environments that fail are among `faults`."""

    def close(self) -> None:
        """Free what the environments hold."""


def episode_seed(seed: int, worker: int, env: int, episode: int) -> int:
    """Seed of one episode's reset, below 2^31."""
    return int(np.random.SeedSequence([seed, worker, env, episode]).generate_state(1)[0] >> 1)


def failure(spec: EnvSpec, seed: int, worker: int, env: int, episode: int, step: int, cause: str) -> str:
    """A fault's message."""
    return (
        f"environment {spec.id!r} failed in worker {worker}, environment {env}, step {step} of its episode {episode} "
        f"(seed {episode_seed(seed, worker, env, episode)}): {cause}"
    )


def check_count(saved: int, num_envs: int) -> None:
    """Raises CheckpointMismatch where a saved state is of another number of environments."""
    if saved != num_envs:
        raise CheckpointMismatch(
            f"the saved worker had {saved} environments, this one {num_envs}: "
            "set num_envs_per_worker to the saved number"
        )


def as_given(space: Space, actions: Array) -> Sequence[Any]:
    """A batch of actions as environments are given them: plain integers where they are discrete."""
    return actions.tolist() if isinstance(space, spaces.Discrete) else list(actions)


class EnvList:
    """Environments stepped one by one; each episode's reset is seeded by its number.

    Args:
        record: keep the open episodes' actions, so that a saved state can be taken up exactly by doing
            them again. An environment must then be a function of its reset's seed and its actions.
        first: index of the first one within the worker.
        begun: number of the last episode that each has begun before.
    """

    def __init__(
        self, spec: EnvSpec, num_envs: int, seed: int, worker: int, record: bool, *, first: int = 0, begun: int = -1
    ) -> None:
        self.num_envs = num_envs
        self._first = first
        self._spec, self._seed, self._worker, self._record = spec, seed, worker, record
        self._envs: list[Env] = [make_env(spec, worker) for _ in range(num_envs)]
        self.observation_space: Space = self._envs[0].observation_space
        self.action_space: Space = self._envs[0].action_space
        space = self.observation_space
        self._shape = space.shape or ()
        self._contains = space.contains if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else None
        self.obs = np.zeros((num_envs, *self._shape), space.dtype)
        self.faults: list[Fault] = []
        self._next_obs = np.zeros_like(self.obs)
        self._rewards = np.zeros(num_envs)
        self._terminateds = np.zeros(num_envs, bool)
        self._truncateds = np.zeros(num_envs, bool)
        self._infos: list[Mapping[str, Any]] = [{}] * num_envs
        self._episodes = [begun] * num_envs
        self._steps = [0] * num_envs
        self._actions: list[list[Any]] = [[] for _ in range(num_envs)]

    def reset(self) -> None:
        for index in range(self.num_envs):
            self._reset(index)

    def step(self, actions: Array) -> Step:
        for index, action in enumerate(as_given(self.action_space, actions)):
            self._step(index, action)
        for index, what in not_finite(reward=self._rewards, observation=self._next_obs):
            self._steps[index] -= 1  # the one that has failed
            self._fail(index, what, f"its {what} isn't finite")
        valid = self._failed_rows() if self.faults else None
        np.copyto(self.obs, self._next_obs)
        ended = self._terminateds | self._truncateds
        infos: Infos = {}
        if np.count_nonzero(ended):
            indexes = np.flatnonzero(ended).tolist()
            # Copies: an environment may go on with the same.
            infos = {index: dict(self._infos[index]) for index in indexes if isinstance(self._infos[index], dict)}
            for index in indexes:
                self._reset(index)
        return Step(self._next_obs, self._rewards, self._terminateds, self._truncateds, valid, infos)

    def restart(self) -> Array:
        begun = np.zeros(self.num_envs, bool)
        begun[[fault.env for fault in self.faults]] = True
        self.faults = []
        for index in np.flatnonzero(begun).tolist():
            with contextlib.suppress(Exception, SystemExit):  # it is broken already
                self._envs[index].close()
            try:
                self._envs[index] = make_env(self._spec, self._worker)
            except RltrainError as error:
                self.faults.append(Fault.of(error, index))
            else:
                self._reset(index)
        return begun

    def get_state(self) -> State:
        open_episodes = [np.asarray(actions, self.action_space.dtype) for actions in self._actions]
        return {"episodes": list(self._episodes), "actions": open_episodes, "obs": self.obs.copy()}

    def set_state(self, state: State) -> None:
        check_count(len(state["episodes"]), self.num_envs)
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
            obs, reward, terminated, truncated, self._infos[index] = self._envs[index].step(action)
            self._put(self._next_obs, index, obs)
            self._rewards[index] = reward
            self._terminateds[index] = terminated
            self._truncateds[index] = truncated
        except (Exception, SystemExit) as error:
            self._fail(index, type(error).__name__, f"{type(error).__name__}: {error}")
            return
        self._steps[index] += 1
        if self._record:
            self._actions[index].append(action)

    def _reset(self, index: int) -> None:
        self._episodes[index] += 1
        self._steps[index] = 0
        self._actions[index].clear()
        seed = episode_seed(self._seed, self._worker, self._first + index, self._episodes[index])
        try:
            obs, _ = self._envs[index].reset(seed=seed)
            self._put(self.obs, index, obs)
        except (Exception, SystemExit) as error:
            self._fail(index, type(error).__name__, f"{type(error).__name__}: {error}")
            return
        if not all_finite(self.obs[index]):
            self._fail(index, "observation", "its first observation isn't finite")

    def _redo(self, index: int, actions: Array, obs: Array) -> None:
        for action in as_given(self.action_space, actions):
            if not self.faults:
                self._step(index, action)
            self.obs[index] = self._next_obs[index]
        if self.faults or not np.array_equal(self.obs[index], obs):
            ended = self.faults[0].message if self.faults else "ended elsewhere"
            raise EnvironmentFailed(
                f"environment {self._spec.id!r} isn't a function of its reset's seed and its actions: doing "
                f"an episode's {len(actions)} actions again {ended}, so a serial run can't be resumed"
            )

    def _put(self, target: Array, index: int, obs: Any) -> None:
        if np.shape(obs) != self._shape:
            raise ValueError(f"observation of shape {np.shape(obs)}, the space says {self._shape}")
        if self._contains is not None and not self._contains(obs):
            raise ValueError(f"observation {obs} isn't in {self.observation_space}")
        target[index] = obs

    def _failed_rows(self) -> Array:
        """Of a step: whether each row is valid; what is in the others ends no episode."""
        failed = [fault.env for fault in self.faults]
        valid = np.ones(self.num_envs, bool)
        valid[failed] = False
        self._next_obs[failed] = self.obs[failed]
        self._rewards[failed] = 0.0
        self._terminateds[failed] = self._truncateds[failed] = False
        return valid

    def _fail(self, index: int, kind: str, cause: str) -> None:
        env, episode, step = self._first + index, self._episodes[index], self._steps[index]
        message = failure(self._spec, self._seed, self._worker, env, episode, step, cause)
        self.faults.append(Fault(kind, message, index))
