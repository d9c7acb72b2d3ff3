"""How good a policy is: whole episodes with fresh seeds."""

from collections.abc import Iterator

from rltrain.api.job import EnvSpec
from rltrain.models.spaces import action_mapping
from rltrain.policies.base import Policy
from rltrain.rollout.collector import Collector, EpisodeRecord
from rltrain.rollout.vector import EnvList
from rltrain.state import Array

_NOT_TRAINING = 1 << 32
"""Set in seeds, above all that a job's can have, so that no episode was trained on."""


def evaluate(policy: Policy, env: EnvSpec, episodes: int, seed: int, explore: bool = False) -> Iterator[EpisodeRecord]:
    """Run episodes one after another, acting on the policy's best actions unless told to explore.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env` and `EnvList`.
    """
    envs = EnvList(env, num_envs=1, seed=seed | _NOT_TRAINING, worker=0, record=False)
    to_env = action_mapping(envs.action_space)

    def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
        actions, _ = policy.compute_actions(obs, explore=explore)
        return actions, to_env(actions), {}

    try:
        collector = Collector(envs, act, worker=0)
        for _ in range(episodes):
            finished: list[EpisodeRecord] = []
            while not finished:
                collector.collect(1)
                finished = collector.drain_episodes()
            yield finished[0]
    finally:
        envs.close()
