"""Evaluation runs whole episodes with seeds of its own."""

from typing import Any

import pytest

from rltrain.api.config import DQNConfig, ExplorationConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.rollout.evaluation import NUM_ENVS, evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

CONFIG = DQNConfig(exploration_config=ExplorationConfig(initial_epsilon=1.0, final_epsilon=1.0))


def played(env: EnvSpec, episodes: int, seed: int, **options: Any) -> list[tuple[float, int]]:
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0, num_workers=1)).policy
    return [(record.return_, record.length) for record in evaluate(policy, env, episodes, seed, **options)]


@pytest.mark.parametrize("episodes", [1, 3, NUM_ENVS, NUM_ENVS + 3])
def test_as_many_whole_episodes_are_run_as_asked_for(episodes: int) -> None:
    assert played(EnvSpec(id="probes.envs:Const"), episodes, seed=1) == [(10.0, 10)] * episodes


def test_the_same_seed_gives_the_same_returns_and_another_others() -> None:
    cartpole = EnvSpec(id="CartPole-v1")
    first = played(cartpole, 8, seed=1)
    assert played(cartpole, 8, seed=1) == first
    assert played(cartpole, 8, seed=2) != first


@pytest.mark.parametrize("env_id", ["CartPole-v1", "probes.envs:Short"])
def test_episodes_are_the_same_for_any_number_of_environments_and_of_episodes(env_id: str) -> None:
    env = EnvSpec(id=env_id)
    one_by_one = played(env, 40, seed=3, num_envs=1)
    assert len({length for _, length in one_by_one}) > 3, "some are short and some are long"
    assert [played(env, 40, seed=3, num_envs=count) for count in (3, NUM_ENVS)] == [one_by_one] * 2
    assert played(env, 5, seed=3) == one_by_one[:5]


def test_best_actions_are_taken_even_by_a_policy_that_explores() -> None:
    env = EnvSpec(id="probes.envs:Identity")
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0)).policy
    first, second = ([record.return_ for record in evaluate(policy, env, 5, seed=3)] for _ in range(2))
    assert first == second, "nothing random is left"


def test_whoever_watches_is_told_of_every_step_up_to_the_last_episode() -> None:
    told: list[tuple[int, int]] = []
    played(EnvSpec(id="probes.envs:Const"), 20, seed=1, watch=lambda done, steps: told.append((done, steps)))
    assert told[0] == (0, NUM_ENVS)
    assert told[-1] == (20, 200)


@pytest.mark.parametrize("kind", ["reward", "observation", "raise"])
def test_environment_that_misbehaves_is_named_with_its_step(kind: str) -> None:
    env = EnvSpec(id="probes.envs:Bad", kwargs={"kind": kind})
    with pytest.raises(EnvironmentFailed, match=r"'probes.envs:Bad' .*step [23] of (its )?episode 0"):
        played(env, 2, seed=0)
