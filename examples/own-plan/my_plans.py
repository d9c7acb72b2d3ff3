"""A plan of one's own, in the words that the built-in ones are written in: see cartpole.yaml."""

from rltrain.api.config import OffPolicyDQNConfig
from rltrain.flow import LocalIterator
from rltrain.ops import (
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


def combined_replay(context: PlanContext[OffPolicyDQNConfig]) -> LocalIterator[Result]:
    """Off-policy learning that learns from every fragment at once, too (Zhang & Sutton 2017).

    rollouts ──> store ──> train                    (1)
    replay ──> train ──> priorities ──> target      (2)
    """
    config, workers, buffer = context.config, context.workers, context.replay
    assert buffer is not None  # base plan OffPolicy has one handed in, and saved
    ledger = context.keep("ledger", IntensityLedger(config.training_intensity, config.train_batch_size))

    # (1) What has just been seen is stored and, once there is enough to replay beside it, learnt from.
    fresh_op = (
        ParallelRollouts(workers, mode="bulk_sync")
        .for_each(StoreToReplayBuffer(buffer, ledger))
        .filter(lambda _: buffer.warm)
        .for_each(TrainOneStep(workers))
    )

    # (2) Batches that the ledger's credit covers are replayed.
    replay_op = (
        Replay(buffer, config.train_batch_size, ledger)
        .for_each(TrainOneStep(workers))
        .for_each(UpdatePriorities(buffer))
        .for_each(UpdateTargetNetwork(workers, config.target_network_update_freq))
    )

    train_op = Concurrently([fresh_op, replay_op], mode="round_robin", output_indexes=[1], round_robin_weights=[1, "*"])
    return StandardMetricsReporting(train_op, workers, config)
