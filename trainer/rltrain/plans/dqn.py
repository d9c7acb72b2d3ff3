"""DQN: rollouts are stored in one replay buffer in the driver, which learns from it in turn.

rollouts ──> store                                          (1)
replay ──> before_learn ──> train ──> priorities ──> target (2)
"""

from rltrain.api.config import DQNConfig
from rltrain.flow import LocalIterator
from rltrain.ops import (
    BeforeLearnOnBatch,
    Concurrently,
    IntensityLedger,
    ParallelRollouts,
    PlanContext,
    Replay,
    Result,
    StandardMetricsReporting,
    StoreToReplayBuffer,
    TrainOneStep,
    UpdatePriorities,
    UpdateTargetNetwork,
)
from rltrain.replay.make import make_buffer


def dqn(context: PlanContext[DQNConfig]) -> LocalIterator[Result]:
    """DQN's dataflow."""
    config, workers = context.config, context.workers
    buffer = context.keep("replay", make_buffer(config, context.seed, context.roster))
    ledger = context.keep("ledger", IntensityLedger(config.training_intensity, config.train_batch_size))

    # (1) One fragment of every worker goes into the buffer.
    store_op = ParallelRollouts(workers, mode="bulk_sync").for_each(StoreToReplayBuffer(buffer, ledger))

    # (2) Batches that the ledger's credit covers are learnt from.
    replay_op = (
        Replay(buffer, config.train_batch_size, ledger)
        .for_each(BeforeLearnOnBatch(config.before_learn_on_batch))
        .for_each(TrainOneStep(workers))
        .for_each(UpdatePriorities(buffer))
        .for_each(UpdateTargetNetwork(workers, config.target_network_update_freq))
    )

    # (1) and (2) in turn; only (2) is reported, for there are no training metrics before it runs.
    train_op = Concurrently([store_op, replay_op], mode="round_robin", output_indexes=[1], round_robin_weights=[1, "*"])
    return StandardMetricsReporting(train_op, workers, config)
