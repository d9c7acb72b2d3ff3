"""The words that plans are written in."""

from rltrain.flow import Concurrently
from rltrain.ops.context import PlanContext, Stateful, Workers
from rltrain.ops.ledger import IntensityLedger
from rltrain.ops.ranks import (
    CheckRanksInSync,
    DownloadWeights,
    RecordRankStats,
    SampleSize,
    TrainRank,
    agree_on_minibatches,
)
from rltrain.ops.replay import Replay, StoreToReplayBuffer, UpdatePriorities
from rltrain.ops.report import Result, StandardMetricsReporting
from rltrain.ops.rollouts import Fragment, ParallelRollouts
from rltrain.ops.train import BeforeLearnOnBatch, TrainOneStep, UpdateTargetNetwork

__all__ = [
    "BeforeLearnOnBatch",
    "CheckRanksInSync",
    "Concurrently",
    "DownloadWeights",
    "Fragment",
    "IntensityLedger",
    "ParallelRollouts",
    "PlanContext",
    "RecordRankStats",
    "Replay",
    "Result",
    "SampleSize",
    "StandardMetricsReporting",
    "Stateful",
    "StoreToReplayBuffer",
    "TrainOneStep",
    "TrainRank",
    "UpdatePriorities",
    "UpdateTargetNetwork",
    "Workers",
    "agree_on_minibatches",
]
