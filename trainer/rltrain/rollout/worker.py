"""RolloutWorker: a policy acting in its environments. Knows nothing of actors or processes."""

import socket
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rltrain.api.config import PlanConfig, SamplingConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import RltrainError
from rltrain.callbacks import Callbacks, Episode
from rltrain.models.spaces import action_mapping
from rltrain.policies.base import Learned, Policy
from rltrain.policies.group import PolicyGroup
from rltrain.policies.native import use_native_code
from rltrain.policies.registry import check_spaces, make_policy, roster_of
from rltrain.rollout.acting import Actor
from rltrain.rollout.agents_envs import ParallelEnvs
from rltrain.rollout.collector import Collector, EpisodeRecord
from rltrain.rollout.environments import make_native_vector, native_from
from rltrain.rollout.faults import NO_FAULTS, FaultReport, Tolerance
from rltrain.rollout.multi_agent import MultiAgentCollector
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.parallel_envs import is_multi_agent, spaces_of
from rltrain.rollout.seats import GroupActor
from rltrain.rollout.subprocesses import ProcessEnvs
from rltrain.rollout.vector import EnvList, VectorEnvs
from rltrain.state import Array, State


@dataclass(frozen=True)
class WorkerSpec:
    """What makes a worker.

    Attributes:
        index: 0 is the driver's own; workers and ranks count from 1.
        config: of a plan that learns from data alone, no worker samples.
        num_workers: workers beside the driver's own; when there are some, that one doesn't sample.
        serial: step and seed environments so that a saved worker goes on bit by bit.
        devices: torch devices of the policy; the driver's own may learn on several.
    """

    plan: str
    env: EnvSpec
    config: PlanConfig
    seed: int
    index: int = 0
    num_workers: int = 0
    serial: bool = False
    devices: tuple[str, ...] = ("cpu",)


class RolloutWorker:
    """Samples fragments and holds the policy that learns or gets weights.

    Raises:
        UnknownEnvironment, EnvironmentFailed, UnsupportedSpace: see `make_env` and `make_policy`.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        envs: VectorEnvs | ParallelEnvs | None = None
        self._several_agents = is_multi_agent(spec.env)
        if isinstance(spec.config, SamplingConfig) and (spec.index > 0 or spec.num_workers == 0):
            envs = self._make_envs(spec.config.num_envs_per_worker)
            self.observation_space, self.action_space = envs.observation_space, envs.action_space
        else:
            self.observation_space, self.action_space = spaces_of(spec.env, spec.index)
        check_spaces(spec.plan, spec.config, self.observation_space, self.action_space)
        self.roster = roster_of(spec.config, self.observation_space, self.action_space)
        self.policy: Learned[Any] = make_policy(
            spec.plan,
            spec.config,
            self.observation_space,
            self.action_space,
            spec.seed,
            worker=spec.index,
            devices=spec.devices,
            workers=spec.num_workers,
        )
        use_native_code(
            self.policy, spec.plan, spec.config, self.observation_space, self.action_space, serial=spec.serial
        )
        self._actor: Actor | GroupActor | None = None
        self._collector: Collector | MultiAgentCollector | None = None
        self._callbacks: Callbacks | None = None
        if envs is not None:
            self._begin_sampling(envs)

    def sample(self) -> Any:
        """Exactly `rollout_fragment_length * num_envs_per_worker` transitions, postprocessed by the policy.

        A Batch; of several agents a MultiAgentBatch of as many env steps.

        Raises:
            TooManyRestarts: environments have failed too often.
        """
        config = self.spec.config
        if not isinstance(config, SamplingConfig):
            raise TypeError(f"plan {self.spec.plan} doesn't sample")
        collector = self._collector or self._begin_sampling(self._make_envs(config.num_envs_per_worker))
        batch = collector.collect(config.rollout_fragment_length * config.num_envs_per_worker, self.enough)
        return self.policy.postprocess(batch)

    def enough(self, steps: int) -> bool:
        """Whether so many steps will do, though a sample has more."""
        return False

    def drain_episodes(self) -> list[EpisodeRecord]:
        """Episodes finished since the last call, each of which the user's callback has been told of.

        Raises:
            CallbackFailed: the callback raised.
        """
        return [self._told(record) for record in self._collector.drain_episodes()] if self._collector else []

    def drain_faults(self) -> FaultReport:
        """Failures of environments since the last call."""
        return self._collector.drain_faults() if self._collector else NO_FAULTS

    def get_weights(self) -> State:
        """The policy's weights."""
        return self.policy.get_weights()

    def set_weights(self, weights: State) -> None:
        """Replace the policy's weights."""
        self.policy.set_weights(weights)

    def set_global_step(self, env_steps: int) -> None:
        """Move the policy's schedules."""
        self.policy.set_global_step(env_steps)

    def set_workers(self, workers: int) -> None:
        """Explore as one of so many."""
        if workers != self.spec.num_workers:
            self.spec = replace(self.spec, num_workers=workers)
            self.policy.set_workers(workers)

    def get_state(self) -> State:
        """Policy, random states and, in serial mode, open episodes: all that `sample` depends on."""
        sampling = self._collector.get_state() if self._collector else None
        acting = self._actor.get_state() if self._actor else None
        return {"policy": self.policy.get_state(), "sampling": sampling, "acting": acting}

    def set_state(self, state: State) -> None:
        """Go on from a saved state; outside serial mode environments begin new episodes.

        Raises:
            CheckpointMismatch: the state is of another network or number of environments.
        """
        self.policy.set_state(state["policy"])
        if state["sampling"] is not None and self._collector and self._actor:
            self._collector.set_state(state["sampling"], open_episodes=self.spec.serial)
            if self.spec.serial:
                self._actor.set_state(state["acting"])

    def node_ip(self) -> str:
        """Address of this machine that others reach."""
        return socket.gethostbyname(socket.gethostname())

    def close(self) -> None:
        """Close the environments."""
        if self._collector:
            self._collector.close()

    def _told(self, record: EpisodeRecord) -> EpisodeRecord:
        if self._callbacks is None:
            self._callbacks = Callbacks(self.spec.config.callbacks)
        episode = Episode(record.return_, record.length, self.spec.index, record.info, record.by_policy)
        return replace(record, info={}, custom_metrics=self._callbacks.on_episode_end(episode))

    def _make_envs(self, count: int) -> VectorEnvs | ParallelEnvs:
        spec, env = self.spec, self.spec.env
        if self._several_agents:
            return ParallelEnvs(env, count, spec.seed, spec.index, record=spec.serial)
        if env.apart:
            return ProcessEnvs(env, count, spec.seed, spec.index, record=spec.serial)
        native = env.vectorize == "Native" or (env.vectorize == "Auto" and count >= native_from(env))
        if native and not spec.serial:
            try:
                make = partial(make_native_vector, env, count, spec.index)
                return NextStepEnvs(make, env.id, spec.seed, spec.index)
            except RltrainError:
                if env.vectorize == "Native":
                    raise
        return EnvList(env, count, spec.seed, spec.index, record=spec.serial)

    def _begin_sampling(self, envs: VectorEnvs | ParallelEnvs) -> Collector | MultiAgentCollector:
        if isinstance(envs, ParallelEnvs):
            assert isinstance(self.policy, PolicyGroup)
            together = MultiAgentCollector(envs, self.policy, self.spec.index, Tolerance.of(self.spec.env))
            self._actor, self._collector = together.actor, together
            return together
        assert isinstance(self.policy, Policy)
        self._actor = actor = Actor(self.policy, envs.num_envs, explore=True)
        to_env = action_mapping(self.action_space)

        def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
            actions, extras = actor.act(obs)
            return actions, to_env(actions), extras

        self._collector = Collector(envs, act, self.spec.index, actor.begin, Tolerance.of(self.spec.env))
        return self._collector
