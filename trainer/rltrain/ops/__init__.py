"""The words that plans are written in."""

from rltrain.flow import Concurrently
from rltrain.ops.apex import AddApexMetrics, ApexContext, LowestEpsilons
from rltrain.ops.context import PlanContext, Stateful, Workers
from rltrain.ops.learner import (
    Dequeue,
    Enqueue,
    UpdatePrioritiesAndStats,
    UpdateWorkerWeights,
)
from rltrain.ops.ledger import FreeRunning, IntensityLedger
from rltrain.ops.ranks import (
    CheckRanksInSync,
    DownloadWeights,
    HurryStragglers,
    RecordRankStats,
    SampleSize,
    TrainRank,
    agree_on_minibatches,
    least_steps,
)
from rltrain.ops.replay import Replay, StoreToReplayBuffer, UpdatePriorities
from rltrain.ops.report import Result, StandardMetricsReporting
from rltrain.ops.rollouts import Fragment, ParallelRollouts
from rltrain.ops.shards import ParallelReplay, StoreToReplayActors
from rltrain.ops.train import BeforeLearnOnBatch, TrainOneStep, UpdateTargetNetwork

__all__ = [
    "AddApexMetrics",
    "ApexContext",
    "BeforeLearnOnBatch",
    "CheckRanksInSync",
    "Concurrently",
    "Dequeue",
    "DownloadWeights",
    "Enqueue",
    "Fragment",
    "FreeRunning",
    "HurryStragglers",
    "IntensityLedger",
    "LowestEpsilons",
    "ParallelReplay",
    "ParallelRollouts",
    "PlanContext",
    "RecordRankStats",
    "Replay",
    "Result",
    "SampleSize",
    "StandardMetricsReporting",
    "Stateful",
    "StoreToReplayActors",
    "StoreToReplayBuffer",
    "TrainOneStep",
    "TrainRank",
    "UpdatePriorities",
    "UpdatePrioritiesAndStats",
    "UpdateTargetNetwork",
    "UpdateWorkerWeights",
    "Workers",
    "agree_on_minibatches",
    "least_steps",
]
