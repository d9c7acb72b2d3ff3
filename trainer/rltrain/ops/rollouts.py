"""ParallelRollouts: fragments of experience from the workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from rltrain.flow import LocalIterator, ParallelIterator, get_metrics
from rltrain.flow.metrics import STEPS_SAMPLED
from rltrain.ops.context import Workers
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.worker import RolloutWorker
from rltrain.state import Array


@dataclass(frozen=True)
class Fragment:
    """What a worker brings: transitions, and the episodes that ended meanwhile."""

    batch: Batch
    episodes: tuple[EpisodeRecord, ...]


def sample_fragment(worker: RolloutWorker, env_steps: int, weights: dict[str, Array] | None) -> Fragment:
    """One fragment, with the newest weights and schedules at the global step. Runs where the worker lives."""
    if weights is not None:
        worker.set_weights(weights)
    worker.set_global_step(env_steps)
    return Fragment(worker.sample(), tuple(worker.drain_episodes()))


@overload
def ParallelRollouts(
    workers: Workers, *, mode: Literal["bulk_sync", "async"], num_async: int = 1
) -> LocalIterator[Batch]: ...
@overload
def ParallelRollouts(workers: Workers, *, mode: Literal["raw"]) -> ParallelIterator[Fragment]: ...


def ParallelRollouts(  # noqa: N802 - operators of the plan language are written like nouns
    workers: Workers, *, mode: Literal["bulk_sync", "async", "raw"], num_async: int = 1
) -> LocalIterator[Batch] | ParallelIterator[Fragment]:
    """Sample in parallel, each time with the newest published weights.

    Args:
        workers: who samples; without actors the driver's own worker does.
        mode: "bulk_sync" concatenates one fragment of every worker; "async" hands fragments out as they come, with
            `num_async` in flight on each worker; "raw" leaves each fragment with its worker.
    """
    shards: ParallelIterator[Fragment] = ParallelIterator(workers, workers.sampling)
    if mode == "raw":
        return shards
    if workers.wanted == 0:
        return LocalIterator(lambda: _sample_here(workers)).for_each(_record)
    if mode == "bulk_sync":
        return shards.gather_rounds().for_each(_record)
    return shards.gather_async(num_async).for_each(lambda fragment: _record([fragment]))


def _sample_here(workers: Workers) -> Sequence[Fragment]:
    with get_metrics().timer("sample")():
        return [sample_fragment(workers.local, get_metrics().counters[STEPS_SAMPLED], None)]


def _record(fragments: Sequence[Fragment]) -> Batch:
    batch = Batch.concat([fragment.batch for fragment in fragments])
    record_sampled(batch.count, [episode for fragment in fragments for episode in fragment.episodes])
    return batch


def record_sampled(steps: int, episodes: Sequence[EpisodeRecord]) -> None:
    """Count sampled steps and finished episodes."""
    metrics = get_metrics()
    metrics.counters[STEPS_SAMPLED] += steps
    for episode in episodes:
        metrics.add_episode(episode.return_, episode.length)
