"""Ape-X (Horgan et al. 2018): workers fill the shards of a replay buffer, a learner beside the driver empties them.

rollouts (async) ──> store in shards ──> new weights for their worker       (1)
replay from shards (async) ──> learner's in-queue                           (2)
learner's out-queue ──> priorities to shards, stats ──> target by trained   (3)

Experience goes from workers to shards and from shards to the learner; the driver holds references alone.
`before_learn_on_batch` runs where the learner does.
"""

from rltrain.api.config import ApexConfig
from rltrain.flow import LocalIterator
from rltrain.ops import (
    AddApexMetrics,
    ApexContext,
    Concurrently,
    Dequeue,
    Enqueue,
    FreeRunning,
    IntensityLedger,
    LowestEpsilons,
    ParallelReplay,
    ParallelRollouts,
    Result,
    StandardMetricsReporting,
    StoreToReplayActors,
    UpdatePrioritiesAndStats,
    UpdateTargetNetwork,
    UpdateWorkerWeights,
)


def apex(context: ApexContext[ApexConfig]) -> LocalIterator[Result]:
    """Ape-X's dataflow."""
    config, workers, shards, learner = context.config, context.workers, context.shards, context.learner
    free = config.training_intensity is None
    ledger = (
        FreeRunning()
        if free
        else context.keep("ledger", IntensityLedger(config.training_intensity, config.train_batch_size))
    )
    sync = context.keep("weight_sync", UpdateWorkerWeights(learner, workers, config.optimizer.max_weight_sync_delay))

    # (1) Fragments go to shards, and their workers get new weights; sampling waits for training that is behind.
    store_op = (
        ParallelRollouts(workers, mode="async", num_async=2, selected_workers=LowestEpsilons(workers))
        .only_while(lambda: not (ledger.behind and shards.warm.actors()))
        .for_each(StoreToReplayActors(shards, ledger, context.seed))
    )
    store_op = store_op.zip_with_source_actor().for_each(sync) if workers.wanted else store_op.for_each(sync.here)

    # (2) Train batches go to the learner.
    replay_op: LocalIterator[None] = (
        ParallelReplay(shards, config.train_batch_size, ledger, num_async=4)
        .zip_with_source_actor()
        .for_each(Enqueue(learner))
    )

    # (3) Priorities come back from it and go to the shards.
    update_op = (
        Dequeue(learner)
        .for_each(UpdatePrioritiesAndStats(shards, ledger, prioritized=config.prioritized_replay))
        .for_each(UpdateTargetNetwork(learner, config.target_network_update_freq, by_steps_trained=True))
    )

    # As fast as each can, or held to a ratio by the ledger. Only (3) is reported: before it there are no metrics.
    if free:
        merged_op = Concurrently([store_op, replay_op, update_op], mode="async", output_indexes=[2])
    else:
        merged_op = Concurrently(
            [store_op, replay_op, update_op], mode="round_robin", output_indexes=[2], round_robin_weights=[1, "*", "*"]
        )
    return StandardMetricsReporting(merged_op, workers, config).for_each(
        AddApexMetrics(workers, shards, learner, debug=config.optimizer.debug)
    )
