"""Generic off-policy training: an algorithm of choice learns from a replay buffer that is handed in.

rollouts ──> store                                          (1)
replay ──> before_learn ──> train ──> priorities ──> target (2)
"""

from rltrain.api.config import OnlineReplayConfig
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


def off_policy(context: PlanContext[OnlineReplayConfig]) -> LocalIterator[Result]:
    """The dataflow that SAC, DQN and their like share.

    Raises:
        ValueError: no buffer was handed in.
    """
    config, workers, buffer = context.config, context.workers, context.replay
    if buffer is None:
        raise ValueError("the OffPolicy plan needs a replay buffer to be handed in")
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
