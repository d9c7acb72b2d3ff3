"""An environment with several agents at work, each of its episodes seeded by its number."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.models.packing import PackedBox
from rltrain.rollout.environments import Space
from rltrain.rollout.faults import all_finite
from rltrain.rollout.parallel_envs import agent_spaces, make_parallel_env
from rltrain.rollout.vector import as_given, episode_seed, failure
from rltrain.state import Array, State


class AgentsStep(NamedTuple):
    """What a step gave, by agents that took part in it.

    Attributes:
        next_obs: observations after the actions; missing of an agent that terminated and sees no more.
        infos: what else the environment says.
        over: whether the episode is.
    """

    next_obs: Mapping[str, Array]
    rewards: Mapping[str, float]
    terminateds: Mapping[str, bool]
    truncateds: Mapping[str, bool]
    infos: Mapping[str, Any]
    over: bool


class AgentsEnv:
    """One environment with several agents.

    Args:
        index: its number within the worker.
        record: keep the open episode's actions, see `EnvList`.
        begun: number of the last episode that it has begun before.

    Attributes:
        obs: what each agent that is to act acts on. Arrays may be reused by the environment: copy what is kept.
    """

    def __init__(self, spec: EnvSpec, seed: int, worker: int, index: int, record: bool, *, begun: int = -1) -> None:
        self._spec, self._seed, self._worker, self._index, self._record = spec, seed, worker, index, record
        self._env = make_parallel_env(spec, worker)
        self.observation_space, self.action_space = agent_spaces(self._env)
        self._agents = {str(agent): agent for agent in self._env.possible_agents}
        self.obs: dict[str, Array] = {}
        self._episode = begun
        self._steps = 0
        self._actions: dict[str, list[Any]] = {}
        self._acting: Mapping[str, Any] = {}

    def begin(self) -> None:
        """Begin the next episode. Raises EnvironmentFailed."""
        self._episode += 1
        self._steps = 0
        self._actions = {name: [] for name in self._agents}
        seed = episode_seed(self._seed, self._worker, self._index, self._episode)
        try:
            obs, _ = self._env.reset(seed=seed)
            self.obs = self._to_act(obs)
            if not self.obs:
                raise ValueError("no agent is there after the reset")
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error

    def step(self, actions: Mapping[str, Any]) -> AgentsStep:
        """Every agent of `obs` acts. Raises EnvironmentFailed."""
        try:
            step = self._step(actions)
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        if self._record:
            for name, action in actions.items():
                self._actions[name].append(action)
        self._steps += 1
        return step

    def act(self, actions: Mapping[str, Any]) -> None:
        """As `step`, of which `outcome` tells."""
        self._acting = actions

    def outcome(self) -> AgentsStep:
        """Of what `act` was told. Raises EnvironmentFailed."""
        return self.step(self._acting)

    def make_again(self) -> None:
        """Replace an environment that has failed. Raises as `make_parallel_env` does."""
        with contextlib.suppress(Exception, SystemExit):  # it is broken already
            self._env.close()
        self._env = make_parallel_env(self._spec, self._worker)

    def get_state(self) -> State:
        """The episode's number and, where recorded, all that was done in it."""
        actions = {name: np.asarray(taken, self.action_space[name].dtype) for name, taken in self._actions.items()}
        obs = {name: np.array(value) for name, value in self.obs.items()}
        return {"episode": self._episode, "steps": self._steps, "actions": actions, "obs": obs}

    def set_state(self, state: State) -> None:
        """Take up the recorded episode, or begin the one after it. Raises EnvironmentFailed."""
        self._episode = int(state["episode"]) - 1 if self._record else int(state["episode"])
        self.begin()
        if not self._record:
            return
        taken = {name: iter(as_given(self.action_space[name], actions)) for name, actions in state["actions"].items()}
        for _ in range(int(state["steps"])):
            self.step({name: next(taken[name]) for name in self.obs})
        if not (self.obs.keys() == state["obs"].keys() and all(map(np.array_equal, *self._pairs(state["obs"])))):
            raise EnvironmentFailed(
                f"environment {self._spec.id!r} isn't a function of its reset's seed and its actions: doing an "
                f"episode's {state['steps']} steps again ended elsewhere, so a serial run can't be resumed"
            )

    def close(self) -> None:
        """Free what the environment holds."""
        self._env.close()

    def _step(self, actions: Mapping[str, Any]) -> AgentsStep:
        obs, rewards, terminateds, truncateds, infos = self._env.step(
            {self._agents[name]: action for name, action in actions.items()}
        )
        seen: dict[str, Array] = {}
        ended: set[str] = set()
        for name in actions:
            agent = self._agents[name]
            for what, values in (("reward", rewards), ("terminated", terminateds), ("truncated", truncateds)):
                if agent not in values:
                    raise ValueError(f"agent {name!r} acted and got no {what}")
            if not all_finite(np.asarray(rewards[agent], np.float64)):
                raise ValueError(f"agent {name!r} got a reward that isn't finite, {rewards[agent]}")
            if agent in obs:
                seen[name] = self._checked(name, obs[agent])
            elif not terminateds[agent]:
                raise ValueError(f"agent {name!r} acted, hasn't terminated and got no observation")
            if terminateds[agent] or truncateds[agent]:
                ended.add(name)
            elif agent not in self._env.agents:
                raise ValueError(f"agent {name!r} is no more in agents, and neither terminated nor truncated")
        living = {str(agent) for agent in self._env.agents}
        if ended & living and living - ended:
            raise ValueError(f"agent {min(ended & living)!r} has ended, and is still in agents")
        self.obs = {} if living <= ended else self._to_act(obs)
        return AgentsStep(
            seen,
            {name: float(rewards[self._agents[name]]) for name in actions},
            {name: bool(terminateds[self._agents[name]]) for name in actions},
            {name: bool(truncateds[self._agents[name]]) for name in actions},
            {name: infos.get(self._agents[name], {}) for name in actions},
            not self.obs,
        )

    def _to_act(self, obs: Mapping[Any, Any]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for agent in self._env.agents:
            if self._agents.get(str(agent), self) != agent:
                raise ValueError(f"agent {agent!r} isn't one of possible_agents")
            if agent not in obs:
                raise ValueError(f"agent {str(agent)!r} is in agents and got no observation")
            found[str(agent)] = self._checked(str(agent), obs[agent])
        return found

    def _checked(self, name: str, obs: Any) -> Array:
        space: Space = self.observation_space[name]
        array: Array = space.pack(obs) if isinstance(space, PackedBox) else np.asarray(obs)
        if array.shape != (space.shape or ()):
            raise ValueError(f"agent {name!r} got an observation of shape {array.shape}, its space says {space.shape}")
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and not space.contains(obs):
            raise ValueError(f"agent {name!r} got the observation {obs}, which isn't in {space}")
        if not all_finite(array):
            raise ValueError(f"agent {name!r} got an observation that isn't finite")
        return array

    def _pairs(self, other: Mapping[str, Array]) -> tuple[Sequence[Array], Sequence[Array]]:
        return list(self.obs.values()), [other[name] for name in self.obs]

    def _failure(self, error: BaseException) -> EnvironmentFailed:
        kind = type(error).__name__
        place = self._worker, self._index, self._episode, self._steps
        return EnvironmentFailed(failure(self._spec, self._seed, *place, f"{kind}: {error}"), kind)
