"""Evaluation runs whole episodes with seeds of its own."""

import numpy as np

from rltrain.api.config import DQNConfig, ExplorationConfig
from rltrain.api.job import EnvSpec
from rltrain.rollout.evaluation import evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

CONFIG = DQNConfig(exploration_config=ExplorationConfig(initial_epsilon=1.0, final_epsilon=1.0))


def returns(env_id: str, episodes: int, seed: int, explore: bool = False) -> list[float]:
    env = EnvSpec(id=env_id)
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0)).policy
    return [record.return_ for record in evaluate(policy, env, episodes, seed, explore)]


def test_as_many_whole_episodes_are_run_as_asked_for() -> None:
    assert returns("probes.envs:Const", 3, seed=1) == [10.0, 10.0, 10.0]


def test_the_same_seed_gives_the_same_returns_and_another_others() -> None:
    first = returns("CartPole-v1", 8, seed=1)
    assert returns("CartPole-v1", 8, seed=1) == first
    assert returns("CartPole-v1", 8, seed=2) != first


def test_best_actions_are_taken_unless_exploring() -> None:
    assert 15 < np.mean(returns("probes.envs:Identity", 10, seed=3, explore=True)) < 35, "a quarter at random"
    env = EnvSpec(id="probes.envs:Identity")
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0)).policy
    first, second = ([record.return_ for record in evaluate(policy, env, 5, seed=3)] for _ in range(2))
    assert first == second, "nothing random is left"
