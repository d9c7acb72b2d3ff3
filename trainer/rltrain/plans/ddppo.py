"""DD-PPO: ranks sample and learn by themselves, averaging gradients; the driver only keeps step with them.

rollouts (raw) ──> sizes agreed ──> train with all-reduce ──> batch across shards ──> record ──> weights ──> check
└────────────────── on every rank ──────────────────────┘
"""

from rltrain.api.config import DDPPOConfig
from rltrain.flow import LocalIterator
from rltrain.ops import (
    CheckRanksInSync,
    DownloadWeights,
    HurryStragglers,
    ParallelRollouts,
    PlanContext,
    RecordRankStats,
    Result,
    SampleSize,
    StandardMetricsReporting,
    TrainRank,
    agree_on_minibatches,
    least_steps,
)


def ddppo(context: PlanContext[DDPPOConfig]) -> LocalIterator[Result]:
    """DD-PPO's dataflow."""
    config, workers = context.config, context.workers
    fragment = config.rollout_fragment_length * config.num_envs_per_worker
    least = least_steps(config) if config.sync_frac < 1 else fragment
    train_op = (
        ParallelRollouts(workers, mode="raw")
        .for_each(SampleSize())
        .agree(agree_on_minibatches(fragment, least), hasten=HurryStragglers(config.sync_frac))
        .for_each(TrainRank())
        .batch_across_shards()
        .for_each(RecordRankStats())
    )
    if config.keep_local_weights_in_sync:
        train_op = train_op.for_each(DownloadWeights(workers))
    return StandardMetricsReporting(train_op.for_each(CheckRanksInSync(workers)), workers, config)
