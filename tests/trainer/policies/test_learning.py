"""Both policies learn: seconds on an identity task, with fixed seeds."""

from rltrain.api.config import DDPPOConfig, DQNConfig, ExplorationConfig, ModelConfig
from rltrain.api.job import EnvSpec
from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout import columns as c
from rltrain.rollout.evaluation import evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

IDENTITY = EnvSpec(id="probes.envs:Identity")
SMALL = ModelConfig(fcnet_hiddens=(32,))


def greedy_return(worker: RolloutWorker) -> float:
    records = list(evaluate(worker.policy, IDENTITY, episodes=5, seed=1))
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
