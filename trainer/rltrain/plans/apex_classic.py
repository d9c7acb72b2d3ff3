"""The first Ape-X: the same loop with the shards beside the driver, always as fast as each part can.

rollouts (async) ──> store in shards ──> new weights for their worker       (1)
replay from shards (async) ──> learner's in-queue                           (2)
learner's out-queue ──> priorities to shards, stats ──> target by trained   (3)

Every worker's episodes are reported.
"""

from rltrain.api.config import ApexClassicConfig
from rltrain.flow import LocalIterator
from rltrain.ops import (
    AddApexMetrics,
    ApexContext,
    Concurrently,
    Dequeue,
    Enqueue,
    FreeRunning,
    ParallelReplay,
    ParallelRollouts,
    Result,
    StandardMetricsReporting,
    StoreToReplayActors,
    UpdatePrioritiesAndStats,
    UpdateTargetNetwork,
    UpdateWorkerWeights,
)


def apex_classic(context: ApexContext[ApexClassicConfig]) -> LocalIterator[Result]:
    """The first Ape-X's dataflow."""
    config, workers, shards, learner = context.config, context.workers, context.shards, context.learner
    ledger = FreeRunning()
    sync = context.keep("weight_sync", UpdateWorkerWeights(learner, workers, config.optimizer.max_weight_sync_delay))

    # (1) Fragments go to shards, and their workers get new weights.
    store_op = ParallelRollouts(workers, mode="async", num_async=2).for_each(
        StoreToReplayActors(shards, ledger, context.seed)
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

    merged_op = Concurrently([store_op, replay_op, update_op], mode="async", output_indexes=[2])
    return StandardMetricsReporting(merged_op, workers, config).for_each(
        AddApexMetrics(workers, shards, learner, debug=config.optimizer.debug)
    )
