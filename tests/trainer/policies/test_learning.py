"""Policies learn: seconds on an identity task or on one for a memory, with fixed seeds."""

from typing import Any

import pytest

from rltrain.api.config import (
    DDPPOConfig,
    DQNConfig,
    ExplorationConfig,
    ModelConfig,
    OffPolicyDQNConfig,
    R2D2Config,
    RecurrentModelConfig,
)
from rltrain.api.env import EnvSpec
from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.make import make_buffer
from rltrain.rollout import columns as c
from rltrain.rollout.evaluation import evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

IDENTITY = EnvSpec(id="probes.envs:Identity")
SMALL = ModelConfig(fcnet_hiddens=(32,))
RECURRENT = RecurrentModelConfig(fcnet_hiddens=(16,), lstm_cell_size=16, max_seq_len=3)


def greedy_return(worker: RolloutWorker, env: EnvSpec = IDENTITY, episodes: int = 5) -> float:
    records = list(evaluate(worker.policy, env, episodes, seed=1))
    return sum(record.return_ for record in records) / len(records)


def test_dqn_learns_identity_in_2000_steps() -> None:
    config = DQNConfig(
        model=SMALL,
        hiddens=(),
        gamma=0.0,
        lr=5e-3,
        n_step=2,
        exploration_config=ExplorationConfig(epsilon_timesteps=1000),
    )
    worker = RolloutWorker(WorkerSpec("DQN", IDENTITY, config, seed=0))
    buffer = ReplayBuffer(2000, learning_starts=200)
    for _ in range(500):
        batch = worker.sample()
        buffer.add(batch)
        worker.set_global_step(buffer.stats().added)
        replayed = buffer.sample(32)
        if replayed is not None:
            info = worker.policy.learn_on_batch(replayed)
            assert info.td_error is not None
            buffer.update_priorities(replayed[c.BATCH_INDEXES], replayed[c.GENERATIONS], info.td_error)
        if buffer.stats().added % 100 == 0:
            worker.policy.update_target()
    assert greedy_return(worker) >= 95


def test_ppo_learns_identity_in_2000_steps() -> None:
    config = DDPPOConfig(model=SMALL, gamma=0.0, lr=5e-3, rollout_fragment_length=40)
    worker = RolloutWorker(WorkerSpec("DDPPO", IDENTITY, config, seed=0))
    for _ in range(10):
        worker.policy.learn_on_batch(worker.sample())
    assert greedy_return(worker) >= 95


RECALL = EnvSpec(id="probes.envs:Recall")
REPLAYED: dict[str, Any] = {
    "hiddens": (),
    "gamma": 0.9,
    "lr": 5e-3,
    "rollout_fragment_length": 6,
    "learning_starts": 100,
    "buffer_size": 3000,
    "exploration_config": ExplorationConfig(epsilon_timesteps=1500),
}


@pytest.mark.parametrize(
    ("config", "best"),
    [
        (R2D2Config(policy="R2D2", model=RECURRENT, train_batch_size=96, **REPLAYED), 1.0),
        (OffPolicyDQNConfig(policy="DQN", model=SMALL, train_batch_size=96, **REPLAYED), 0.5),
    ],
    ids=["R2D2", "DQN"],
)
def test_only_a_recurrent_network_learns_what_takes_a_memory(config: Any, best: float) -> None:
    worker = RolloutWorker(WorkerSpec("OffPolicy", RECALL, config, seed=0))
    buffer = make_buffer(config, seed=0)
    for step in range(300):
        buffer.add(worker.sample())
        worker.set_global_step(6 * step)
        replayed = buffer.sample(config.train_batch_size)
        if replayed is not None:
            worker.policy.learn_on_batch(replayed)
        if step % 20 == 0:
            worker.policy.update_target()
    assert greedy_return(worker, RECALL, episodes=100) == pytest.approx(best, abs=0.15)
