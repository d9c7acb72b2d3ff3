"""DD-PPO: ranks sample and learn by themselves, averaging gradients; the driver only keeps step with them.

rollouts (raw) ──> sizes agreed ──> train with all-reduce ──> batch across shards ──> record ──> weights ──> check
└────────────────── on every rank ──────────────────────┘
"""

from rltrain.api.config import DDPPOConfig
from rltrain.api.errors import InvalidManifest, Problem
from rltrain.flow import LocalIterator
from rltrain.ops import (
    CheckRanksInSync,
    DownloadWeights,
    ParallelRollouts,
    PlanContext,
    RecordRankStats,
    Result,
    SampleSize,
    StandardMetricsReporting,
    TrainRank,
    agree_on_minibatches,
)


def ddppo(context: PlanContext[DDPPOConfig]) -> LocalIterator[Result]:
    """DD-PPO's dataflow. Raises InvalidManifest for an option that isn't carried out."""
    config, workers = context.config, context.workers
    if config.sync_frac is not None:
        told = Problem("spec.config.sync_frac", "stragglers can't be cut short in this release", "leave it out")
        raise InvalidManifest([told])
    train_op = (
        ParallelRollouts(workers, mode="raw")
        .for_each(SampleSize())
        .agree(agree_on_minibatches(config.rollout_fragment_length * config.num_envs_per_worker))
        .for_each(TrainRank())
        .batch_across_shards()
        .for_each(RecordRankStats())
    )
    if config.keep_local_weights_in_sync:
        train_op = train_op.for_each(DownloadWeights(workers))
    return StandardMetricsReporting(train_op.for_each(CheckRanksInSync(workers)), workers, config)
