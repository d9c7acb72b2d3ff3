"""Transitions recorded as the environment sees them, for datasets."""

from typing import Final

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.models.spaces import action_mapping
from rltrain.policies.base import Policy
from rltrain.rollout import columns as c
from rltrain.rollout.acting import Actor
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import Collector
from rltrain.rollout.vector import EnvList
from rltrain.state import Array

_RECORDING: Final = 1 << 33
"""Set in seeds, above all that training and evaluation use, so that neither plays a recorded episode."""


def record(
    env: EnvSpec, policy: Policy | None, steps: int, seed: int, *, explore: bool = False, source: int = 0
) -> Batch:
    """Play whole episodes until at least so many steps have been taken.

    Args:
        policy: acts; None for uniformly random actions.
        seed: of the episodes and of random actions.
        explore: as the policy does while it trains, rather than with its best actions.
        source: sets this recording's episodes apart from others of the same seed.

    Returns:
        The collector's columns, with the environment's own actions.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env` and `EnvList`.
    """
    envs = EnvList(env, num_envs=1, seed=seed | _RECORDING, worker=source, record=False)
    actor = _RandomActor(envs, seed + source) if policy is None else Actor(policy, rows=1, explore=explore)
    to_env = (lambda actions: actions) if policy is None else action_mapping(envs.action_space)

    def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
        actions = to_env(actor.act(obs)[0])
        return actions, actions, {}

    try:
        collector = Collector(envs, act, source, actor.begin)
        rows: list[Batch] = []
        while len(rows) < steps or not (rows[-1][c.TERMINATEDS] | rows[-1][c.TRUNCATEDS]).any():
            rows.append(collector.collect(1))
        return Batch.concat(rows)
    finally:
        envs.close()


class _RandomActor:
    """Uniformly random actions of the environments' own."""

    def __init__(self, envs: EnvList, seed: int) -> None:
        self._space = envs.action_space
        self._space.seed(seed)

    def act(self, obs: Array) -> tuple[Array, dict[str, Array]]:
        return np.stack([np.asarray(self._space.sample()) for _ in obs]), {}

    def begin(self, rows: Array) -> None: ...
