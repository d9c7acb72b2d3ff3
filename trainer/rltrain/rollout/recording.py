"""Transitions recorded as the environment sees them, for datasets."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.models.agents import Roster, each_its_own
from rltrain.models.spaces import Space, action_mapping, stored_actions
from rltrain.policies.base import Learned, Policy
from rltrain.policies.group import PolicyGroup
from rltrain.rollout import columns as c
from rltrain.rollout.acting import Actor, Acts
from rltrain.rollout.agents_envs import ParallelEnvs
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import Collector
from rltrain.rollout.multi_agent import MultiAgentCollector
from rltrain.rollout.multi_agent_batch import AnyBatch, MultiAgentBatch
from rltrain.rollout.parallel_envs import is_multi_agent
from rltrain.rollout.seats import ActTogether
from rltrain.rollout.subprocesses import one_env
from rltrain.state import Array

RECORDED: Final = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.TERMINATEDS, c.TRUNCATEDS, c.EPS_ID)
"""Columns of a recording; of several agents ENV_STEP too."""
_RECORDING: Final = 1 << 33
"""Set in seeds, above all that training and evaluation use, so that neither plays a recorded episode."""


def record(
    env: EnvSpec, policy: Learned[Any] | None, steps: int, seed: int, *, explore: bool = False, source: int = 0
) -> AnyBatch:
    """Play whole episodes until at least so many steps have been taken.

    Args:
        policy: acts; None for uniformly random actions.
        seed: of the episodes and of random actions.
        explore: as the policy does while it trains, rather than with its best actions.
        source: sets this recording's episodes apart from others of the same seed.

    Returns:
        The columns of RECORDED, with the environment's own actions; of several agents by agent rather than by policy.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env`, `EnvList` and `ProcessEnvs`.
    """
    if isinstance(policy, PolicyGroup) or (policy is None and is_multi_agent(env)):
        return _record_together(env, policy, steps, seed, explore, source)
    assert policy is None or isinstance(policy, Policy)
    envs = one_env(env, seed | _RECORDING, worker=source)
    actor = Actor(policy or _Chance(envs.action_space, seed, source), rows=1, explore=explore)
    to_env = action_mapping(envs.action_space)

    def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
        actions = to_env(actor.act(obs)[0])
        return actions, actions, {}

    try:
        collector = Collector(envs, act, source, actor.begin)
        rows: list[Batch] = []
        while len(rows) < steps or not (rows[-1][c.TERMINATEDS] | rows[-1][c.TRUNCATEDS]).any():
            rows.append(collector.collect(1))
        return _kept(Batch.concat(rows))
    finally:
        envs.close()


def _record_together(
    env: EnvSpec, group: PolicyGroup | None, steps: int, seed: int, explore: bool, source: int
) -> MultiAgentBatch:
    envs = ParallelEnvs(env, num_envs=1, seed=seed | _RECORDING, worker=source, record=False)
    try:
        acting: ActTogether = group or _ChanceGroup.of(envs, seed, source)
        collector = MultiAgentCollector(envs, acting, source, explore=explore)
        rows: list[MultiAgentBatch] = []
        over = False
        while len(rows) < steps or not over:
            rows.append(collector.collect(1))
            over = bool(collector.drain_episodes())
    finally:
        envs.close()
    recorded = MultiAgentBatch.concat(rows)
    by_agent: dict[str, Batch] = {}
    for policy, agents in acting.roster.agents.items():
        its = recorded.policies[policy]
        actions = action_mapping(acting.roster.action_spaces[policy])(its[c.ACTIONS])
        its = _kept(its.with_columns(**{c.ACTIONS: actions}), c.ENV_ID, c.ENV_STEP)
        for place, agent in enumerate(agents):
            by_agent[agent] = _kept(its.take(np.flatnonzero(its[c.ENV_ID] == place)), c.ENV_STEP)
    return MultiAgentBatch(by_agent, recorded.count)


def _kept(rows: Batch, *others: str) -> Batch:
    return Batch({name: rows[name] for name in (*RECORDED, *others)})


class _Chance:
    """Uniformly random actions of an environment's own."""

    def __init__(self, space: Space, *seed: int) -> None:
        self._space = copy.deepcopy(space)
        self._space.seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        return stored_actions(self._space, np.stack([np.asarray(self._space.sample()) for _ in obs])), {}


@dataclass(frozen=True)
class _ChanceGroup:
    """The same for several agents, each by itself."""

    policies: Mapping[str, Acts]
    roster: Roster

    @classmethod
    def of(cls, envs: ParallelEnvs, seed: int, source: int) -> "_ChanceGroup":
        roster = each_its_own(envs.observation_space, envs.action_space)
        spaces = roster.action_spaces.items()
        return cls({name: _Chance(space, seed, source, place) for place, (name, space) in enumerate(spaces)}, roster)
