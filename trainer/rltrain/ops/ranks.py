"""What DD-PPO's ranks do by themselves, and how the driver keeps step with them."""

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rltrain.api.config import DDPPOConfig
from rltrain.api.errors import TrainingFailed
from rltrain.api.names import DEBUG
from rltrain.flow import get_metrics
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED, STEPS_TRAINED_THIS_ITER
from rltrain.ops.context import Workers
from rltrain.ops.rollouts import Fragment, record_faults, record_sampled
from rltrain.policies.base import Minibatches
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.faults import NO_FAULTS, FaultReport
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import State, content_hash

CHECK_SECONDS: Final = 1.0
"""Between two comparisons of the ranks' tensors."""


@dataclass(frozen=True)
class RankReport:
    """What a rank tells the driver of an iteration; `learn_s` is its seconds of SGD, averaging included."""

    stats: dict[str, float]
    count: int
    learn_s: float
    episodes: tuple[EpisodeRecord, ...]
    faults: FaultReport = NO_FAULTS


class Rank(RolloutWorker):
    """A rollout worker that learns as well, and keeps its last whole state readable while it works.

    Attributes:
        average: the group's collective operation; set when the group is formed.
        store: where the group's members met.
        whole: iteration, and networks and optimizer at its end: the same on every rank.
        held: the fragment that is being agreed about.
        hurried: number of the iteration in which enough of the others have their fragment, so that a part of this
            one's must do.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        super().__init__(spec)
        self.average: Callable[[Any], Any] | None = None
        self.store: Any = None
        self.whole: tuple[int, State] = (0, self.policy.learned_state())
        self.held: Fragment | None = None
        self.hurried: int | None = None

    def enough(self, steps: int) -> bool:
        config = self.spec.config
        assert isinstance(config, DDPPOConfig)
        return self.hurried == self.whole[0] and steps >= least_steps(config)

    def own_state(self) -> State:
        """What this rank doesn't share with the others: random states, episodes, schedules."""
        state = self.get_state()
        shared = self.whole[1].keys()
        state["policy"] = {name: value for name, value in state["policy"].items() if name not in shared}
        return state

    def begin(self, whole: tuple[int, State], own: State | None) -> None:
        """Stand where all ranks stand; `own` is what a checkpoint has of this one."""
        if own is not None:
            self.set_state({**own, "policy": {**own["policy"], **whole[1]}})
        else:
            self.policy.set_state({**self.policy.get_state(), **whole[1]})
        self.whole = whole
        self.held = None


@dataclass(frozen=True)
class Size:
    """A rank's fragment, as the others must know it."""

    rows: int
    minibatches: Minibatches
    iteration: int = 0


def least_steps(config: DDPPOConfig) -> int:
    """Steps that even a straggler brings: a quarter of a fragment (Wijmans et al. 2020, section 3)."""
    return -(-config.rollout_fragment_length * config.num_envs_per_worker // 4)


class SampleSize:
    """Keep the fragment on its rank and tell only its size."""

    def __call__(self, rank: Rank, fragment: Fragment) -> Size:
        rank.held = fragment
        rows = fragment.batch.count
        return Size(rows, rank.policy.minibatches_of(fragment.batch), rank.whole[0])


class HurryStragglers:
    """Once a share of the ranks has its fragment, the others stop at what they have, or at a quarter of theirs.

    Args:
        sync_frac: the share; with 1 nobody is hurried.
    """

    def __init__(self, sync_frac: float) -> None:
        self._sync_frac = sync_frac

    def __call__(self, done: Sequence[Size], ranks: int) -> Callable[[Any], None] | None:
        """What to have the others do beside sampling, given who is done; None where nothing yet."""
        return None if len(done) < self._sync_frac * ranks else partial(_hurry, iteration=done[0].iteration)


def agree_on_minibatches(expected: int, least: int | None = None) -> Callable[[Sequence[Size]], Minibatches]:
    """Minibatches in an epoch, the same for every rank, or the first of them to run out would hang the others.

    Args:
        expected: steps of a whole fragment.
        least: steps that a straggler's has; that many by default.

    Raises (when called):
        TrainingFailed: a rank brings another number of steps.
    """

    def combine(sizes: Sequence[Size]) -> Minibatches:
        if any(not (least or expected) <= size.rows <= expected for size in sizes):
            wanted = f"{expected} steps" if least is None else f"{least} to {expected} steps"
            raise TrainingFailed(f"each rank must bring {wanted}, but they bring {[s.rows for s in sizes]}")
        if short := sum(size.rows < expected for size in sizes):
            get_metrics().counters["num_fragments_cut_short"] += short
        return _largest([size.minibatches for size in sizes])

    return combine


class TrainRank:
    """Minibatch SGD on the held fragment; each gradient is averaged over the group. Runs on every rank."""

    def __call__(self, rank: Rank, minibatches: Minibatches) -> Generator[Any, Any, RankReport]:
        fragment, rank.held = rank.held, None
        assert fragment is not None
        begun = time.perf_counter()
        info = yield from rank.policy.minibatch_sgd(fragment.batch, minibatches=minibatches)
        learn_s = time.perf_counter() - begun
        rank.whole = (rank.whole[0] + 1, rank.policy.learned_state())
        return RankReport(info.stats, fragment.batch.count, learn_s, fragment.episodes, fragment.faults)


class RecordRankStats:
    """Count the steps and episodes of all ranks."""

    def __call__(self, reports: list[RankReport]) -> list[RankReport]:
        metrics = get_metrics()
        steps = sum(report.count for report in reports)
        record_sampled(steps, [episode for report in reports for episode in report.episodes])
        record_faults([report.faults for report in reports])
        metrics.counters[STEPS_TRAINED_THIS_ITER] = steps
        metrics.counters[STEPS_TRAINED] += steps
        timer = metrics.timer("learn")
        timer.push_measured(max(report.learn_s for report in reports))
        timer.push_units(steps)
        names = reports[0].stats
        metrics.info["learner"] = {
            name: sum(report.stats[name] * report.count for report in reports) / steps for name in names
        }
        return reports


class DownloadWeights:
    """Copy rank 0's weights to the driver's policy."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def __call__(self, reports: list[RankReport]) -> list[RankReport]:
        actors = self._workers.actors()
        if actors:
            policy = self._workers.local.policy
            policy.set_global_step(get_metrics().counters[STEPS_SAMPLED])
            policy.set_weights(self._workers.backend.result(actors[0].apply(_weights)))
        return reports


class CheckRanksInSync:
    """Compare a hash over every tensor, the optimizer's too, of every rank.

    Args:
        every_s: seconds between two comparisons; 0, as in debug mode, compares after each iteration.

    Raises (when called):
        TrainingFailed: ranks differ.
    """

    def __init__(self, workers: Workers, every_s: float | None = None) -> None:
        self._workers = workers
        usual = 0.0 if os.environ.get(DEBUG) == "1" else CHECK_SECONDS
        self._every_s = usual if every_s is None else every_s

    def __call__(self, reports: list[RankReport]) -> list[RankReport]:
        metrics = get_metrics()
        metrics.info.pop("rank_hashes", None)
        last = metrics.marks.get("last_sync_check")
        if last is not None and metrics.clock() - last < self._every_s:
            return reports
        metrics.marks["last_sync_check"] = metrics.clock()
        futures = [actor.apply(_hash) for actor in self._workers.actors()]
        hashes = [self._workers.backend.result(future) for future in futures]
        if len(set(hashes)) > 1:
            raise TrainingFailed(f"ranks have drifted apart, their tensors' hashes are {hashes}")
        metrics.info["rank_hashes"] = hashes
        return reports


def _largest(counts: Sequence[Minibatches]) -> Minibatches:
    """Of each policy by itself, where there are several: those with few rows make few minibatches."""
    by_policy = [count for count in counts if isinstance(count, Mapping)]
    if by_policy:
        return {name: max(count[name] for count in by_policy) for name in by_policy[0]}
    return max(count for count in counts if isinstance(count, int))


def _hurry(rank: Rank, iteration: int) -> None:
    rank.hurried = iteration


def _weights(rank: Rank) -> Any:
    return rank.get_weights()


def _hash(rank: Rank) -> str:
    return content_hash(rank.policy.learned_state())
