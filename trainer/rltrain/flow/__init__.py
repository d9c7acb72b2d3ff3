"""The dataflow that plans are written in: lazy iterators over actors, pulled by the driver."""

from rltrain.flow.actors import (
    Actor,
    ActorFailed,
    ActorLost,
    Backend,
    CollectiveFailed,
    Future,
    ShardFailure,
    ValueLost,
)
from rltrain.flow.concurrently import Concurrently
from rltrain.flow.local import LocalIterator, Stalled
from rltrain.flow.metrics import MetricsContext, get_metrics
from rltrain.flow.outstanding import Outstanding
from rltrain.flow.parallel import ParallelIterator, Shards
from rltrain.flow.signals import NOT_READY, PROGRESS, Signal

__all__ = [
    "NOT_READY",
    "PROGRESS",
    "Actor",
    "ActorFailed",
    "ActorLost",
    "Backend",
    "CollectiveFailed",
    "Concurrently",
    "Future",
    "LocalIterator",
    "MetricsContext",
    "Outstanding",
    "ParallelIterator",
    "ShardFailure",
    "Shards",
    "Signal",
    "Stalled",
    "ValueLost",
    "get_metrics",
]
