"""Transitions recorded as the environment sees them, for datasets."""

from collections.abc import Callable
from typing import Final

import numpy as np

from rltrain.api.job import EnvSpec
from rltrain.models.spaces import action_mapping
from rltrain.policies.base import Policy
from rltrain.rollout import columns as c
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
    choose = _random(envs, seed + source) if policy is None else _acting(envs, policy, explore)

    def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
        actions = choose(obs)
        return actions, actions, {}

    try:
        collector = Collector(envs, act, source)
        rows: list[Batch] = []
        while len(rows) < steps or not (rows[-1][c.TERMINATEDS] | rows[-1][c.TRUNCATEDS]).any():
            rows.append(collector.collect(1))
        return Batch.concat(rows)
    finally:
        envs.close()


def _random(envs: EnvList, seed: int) -> Callable[[Array], Array]:
    space = envs.action_space
    space.seed(seed)
    return lambda obs: np.stack([np.asarray(space.sample()) for _ in obs])


def _acting(envs: EnvList, policy: Policy, explore: bool) -> Callable[[Array], Array]:
    to_env = action_mapping(envs.action_space)
    return lambda obs: to_env(policy.compute_actions(obs, explore=explore)[0])
