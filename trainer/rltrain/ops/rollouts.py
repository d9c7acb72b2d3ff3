"""ParallelRollouts: fragments of experience from the workers."""

import logging
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

from rltrain.flow import LocalIterator, ParallelIterator, get_metrics
from rltrain.flow.metrics import ENV_RESTARTS, EPISODES_DROPPED, STEPS_SAMPLED
from rltrain.ops.context import Workers
from rltrain.replay.shard import Experience
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.faults import NO_FAULTS, FaultReport
from rltrain.rollout.multi_agent_batch import AnyBatch, concat
from rltrain.rollout.worker import RolloutWorker
from rltrain.state import State

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fragment:
    """What a worker brings: transitions, episodes that ended meanwhile, failed environments; and how long it took."""

    batch: AnyBatch
    episodes: tuple[EpisodeRecord, ...]
    faults: FaultReport = NO_FAULTS
    sample_s: float = 0.0


@dataclass(frozen=True)
class FragmentInfo:
    """What the driver knows of a fragment that stays where it was sampled."""

    worker: int
    count: int
    episodes: tuple[EpisodeRecord, ...]
    faults: FaultReport = NO_FAULTS
    sample_s: float = 0.0


@dataclass(frozen=True)
class Delivered:
    """A fragment of which the driver holds only a reference to its `Experience`."""

    info: FragmentInfo
    experience: Any

    @property
    def count(self) -> int:
        """Transitions."""
        return self.info.count


def sample_fragment(worker: RolloutWorker, env_steps: int, workers: int, weights: State | None) -> Fragment:
    """One fragment, with the newest weights, and schedules at the global step. Runs where the worker lives.

    Args:
        workers: how many are wanted by now.
    """
    begun = time.perf_counter()
    if weights is not None:
        worker.set_weights(weights)
    worker.set_workers(workers)
    worker.set_global_step(env_steps)
    batch = worker.sample()
    seconds = time.perf_counter() - begun
    return Fragment(batch, tuple(worker.drain_episodes()), worker.drain_faults(), seconds)


def deliver_fragment(
    worker: RolloutWorker, env_steps: int, workers: int, weights: State | None
) -> tuple[FragmentInfo, Experience]:
    """The same in two parts, with the worker's own judgement of its transitions. Runs where the worker lives."""
    begun = time.perf_counter()
    fragment = sample_fragment(worker, env_steps, workers, weights)
    errors = worker.policy.td_error(fragment.batch)
    seconds = time.perf_counter() - begun
    info = FragmentInfo(worker.spec.index, fragment.batch.count, fragment.episodes, fragment.faults, seconds)
    return info, Experience(fragment.batch, errors)


@overload
def ParallelRollouts(workers: Workers, *, mode: Literal["bulk_sync"]) -> LocalIterator[AnyBatch]: ...
@overload
def ParallelRollouts(workers: Workers, *, mode: Literal["raw"]) -> ParallelIterator[Fragment]: ...
@overload
def ParallelRollouts(
    workers: Workers, *, mode: Literal["async"], num_async: int = 1, selected_workers: Container[int] | None = None
) -> LocalIterator[Delivered]: ...


def ParallelRollouts(  # noqa: N802 - operators of the plan language are written like nouns
    workers: Workers,
    *,
    mode: Literal["bulk_sync", "async", "raw"],
    num_async: int = 1,
    selected_workers: Container[int] | None = None,
) -> LocalIterator[AnyBatch] | LocalIterator[Delivered] | ParallelIterator[Fragment]:
    """Sample in parallel, each time with the newest published weights.

    Args:
        workers: who samples; without actors the driver's own worker does.
        mode: "bulk_sync" concatenates one fragment of every worker; "async" hands out references to fragments as they
            come, with `num_async` in flight on each worker; "raw" leaves each fragment with its worker.
        selected_workers: indexes of those whose episodes are reported, all by default.
    """
    shards: ParallelIterator[Fragment] = ParallelIterator(workers, workers.sampling)
    if mode == "raw":
        return shards
    if mode == "bulk_sync":
        if workers.wanted == 0:
            return LocalIterator(lambda: _sample_here(workers)).for_each(_record)
        return shards.gather_rounds().for_each(_timed).for_each(_record)

    def record(delivered: Delivered) -> Delivered:
        info = delivered.info
        record_sampled(info.count, info.episodes, selected_workers is None or info.worker in selected_workers)
        record_faults([info.faults])
        return delivered

    if workers.wanted == 0:
        return LocalIterator(lambda: _deliver_here(workers)).for_each(record)
    deliveries: ParallelIterator[tuple[FragmentInfo, Any]] = ParallelIterator(
        workers, lambda actor: replace(workers.sampling(actor), function=deliver_fragment, split=True)
    )

    def timed(item: tuple[FragmentInfo, Any]) -> Delivered:
        get_metrics().timer("sample").push_measured(item[0].sample_s)
        return Delivered(*item)

    return deliveries.gather_async(num_async, name="rollouts").for_each(timed).for_each(record)


def _timed(fragments: Sequence[Fragment]) -> Sequence[Fragment]:
    get_metrics().timer("sample").push_measured(max(fragment.sample_s for fragment in fragments))
    return fragments


def _sample_here(workers: Workers) -> Sequence[Fragment]:
    with get_metrics().timer("sample")():
        return [sample_fragment(workers.local, get_metrics().counters[STEPS_SAMPLED], 0, None)]


def _deliver_here(workers: Workers) -> Delivered:
    metrics = get_metrics()
    metrics.current_actor = None
    with metrics.timer("sample")():
        info, experience = deliver_fragment(workers.local, metrics.counters[STEPS_SAMPLED], 0, None)
    return Delivered(info, workers.backend.share(experience))


def _record(fragments: Sequence[Fragment]) -> AnyBatch:
    batch = concat([fragment.batch for fragment in fragments])
    record_sampled(batch.count, [episode for fragment in fragments for episode in fragment.episodes])
    record_faults([fragment.faults for fragment in fragments])
    return batch


def record_sampled(steps: int, episodes: Sequence[EpisodeRecord], selected: bool = True) -> None:
    """Count sampled steps and finished episodes; those of selected workers are reported."""
    metrics = get_metrics()
    metrics.counters[STEPS_SAMPLED] += steps
    for episode in episodes:
        metrics.add_episode(episode.return_, episode.length, episode.by_policy, in_window=selected)
        metrics.add_custom(episode.custom_metrics)


def record_faults(reports: Sequence[FaultReport]) -> None:
    """Count environments that were made again and episodes that were dropped; each kind of fault is warned of once."""
    metrics = get_metrics()
    for report in reports:
        metrics.counters[ENV_RESTARTS] += len(report.restarts)
        metrics.counters[EPISODES_DROPPED] += report.episodes_dropped
        for fault in report.restarts:
            of_kind = f"{ENV_RESTARTS}/{fault.kind}"
            if not metrics.counters[of_kind]:
                log.warning("%s. It was made again; further failures of this kind are only counted", fault.message)
            metrics.counters[of_kind] += 1
