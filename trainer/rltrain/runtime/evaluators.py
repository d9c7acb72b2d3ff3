"""Evaluation during training: greedy episodes with the newest weights, played beside it or between two reports."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.flow import Actor, Backend, Future, ShardFailure, get_metrics
from rltrain.flow.metrics import REPORTS, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.evaluation import Scores, evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.checkpoint import Summary
from rltrain.runtime.crew import Crew, Patience
from rltrain.state import Array

EVALUATIONS: Final = "num_evaluations"
_LAST: Final = "last_evaluation_report"
_PATIENCE: Final = Patience(clean_calls=1, losses=None)


@dataclass(frozen=True)
class MakeEvaluator:
    """Makes a worker that has the policy and never samples: the driver's own, as if others sampled for it."""

    spec: WorkerSpec

    def __call__(self, index: int, incarnation: int) -> RolloutWorker:
        return RolloutWorker(self.spec)


def make_evaluators(job: RLTrainingJob, backend: Backend, worker: WorkerSpec) -> "Evaluators | None":
    """Processes beside the driver, as many as the config says; with none of them the driver itself plays.

    Args:
        worker: of the driver, on the device that it plays on.
    """
    config = job.spec.config
    if not config.evaluation_interval:
        return None
    beside = config.evaluation_num_workers
    spec = replace(worker, index=0, num_workers=max(1, worker.num_workers))
    make = MakeEvaluator(replace(spec, devices=("cpu",)) if beside else spec)
    place = backend if beside else SerialBackend(backend.serial)
    crew = Crew(place, names.HEAD, max(1, beside), make, "evaluation_worker", slotless=True, patience=_PATIENCE)
    return Evaluators(crew, config.evaluation_interval, config.evaluation_num_episodes, job.spec.seed)


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found.

    Attributes:
        env_steps, trained_steps: when the weights were taken.
    """

    scores: Scores
    env_steps: int
    trained_steps: int

    @property
    def steps(self) -> int:
        """See `MetricsContext.steps`."""
        return self.env_steps or self.trained_steps

    def to_json(self) -> dict[str, Any]:
        """As it stands in a report."""
        return {**asdict(self.scores), "env_steps": self.env_steps, "trained_steps": self.trained_steps}


@dataclass
class _Running:
    """An evaluation whose episodes are being played, in shares."""

    weights: Any
    env_steps: int
    trained_steps: int
    seed: int
    report: int
    begun: float
    waiting: deque[range]
    playing: dict[int, tuple[Future, range]] = field(default_factory=dict)
    records: dict[int, list[EpisodeRecord]] = field(default_factory=dict)


class Evaluators:
    """Who evaluates. A lost one is made again, and what it was playing is played anew.

    Only a finished evaluation counts: one that an interruption cuts short begins again after the next report.

    Args:
        crew: the actors.
        interval: reports between the beginnings of two evaluations.
        episodes: of an evaluation.
        seed: of the episodes, other ones in each evaluation.
    """

    def __init__(self, crew: Crew, interval: int, episodes: int, seed: int) -> None:
        self._crew = crew
        self._interval = interval
        self._episodes = episodes
        self._seed = seed
        self._live: dict[int, Actor] = {}
        self._running: _Running | None = None

    def due(self, reports_more: int = 0) -> bool:
        """Whether an evaluation can and should begin: one at a time, and none before somebody is there to play.

        Args:
            reports_more: that are about to be made.
        """
        counters = get_metrics().counters
        if self._running is not None or counters[REPORTS] + reports_more - counters[_LAST] < self._interval:
            return False
        self._take_in()
        return bool(self._live)

    def begin(self, weights: dict[str, Array], saved: Summary | None = None) -> None:
        """Evaluate the present weights, or those of a checkpoint."""
        metrics = get_metrics()
        count = min(self._crew.wanted, self._episodes)
        bounds = [self._episodes * share // count for share in range(count + 1)]
        self._running = _Running(
            weights=self._crew.backend.share(weights),
            env_steps=metrics.counters[STEPS_SAMPLED] if saved is None else saved.env_steps,
            trained_steps=metrics.counters[STEPS_TRAINED] if saved is None else saved.trained_steps,
            seed=(self._seed + metrics.counters[EVALUATIONS] + 1) % (1 << 32),
            report=metrics.counters[REPORTS],
            begun=metrics.clock(),
            waiting=deque(range(*pair) for pair in pairwise(bounds)),
        )

    def poll(self) -> Evaluation | None:
        """An evaluation that has ended since; where nothing runs beside the driver it is played to its end here.

        Raises:
            RltrainError: an environment fails again and again.
        """
        while self._running is not None:
            self._take_in()
            self._collect(self._running)
            if not (self._running.waiting or self._running.playing):
                return self._ended(self._running)
            self._hand_out(self._running)
            if self._crew.backend.parallel:
                return None
        return None

    def pending(self) -> Sequence[Future]:
        """What the running evaluation, if there is one, waits for."""
        if self._running is None:
            return ()
        return [*(future for future, _ in self._running.playing.values()), *self._crew.pending()]

    def _take_in(self) -> None:
        for actor in self._crew.arrived():
            self._live[actor.index] = actor

    def _collect(self, running: _Running) -> None:
        futures = [future for future, _ in running.playing.values()]
        for future in self._crew.backend.wait(futures, 0.0) if futures else ():
            actor = future.actor
            _, share = running.playing.pop(actor.index)
            try:
                running.records[share.start] = self._crew.backend.result(future)
                self._crew.succeeded(actor)
            except ShardFailure as failure:
                running.waiting.appendleft(share)
                del self._live[actor.index]
                self._crew.replace([failure])

    def _hand_out(self, running: _Running) -> None:
        for index, actor in sorted(self._live.items()):
            if index not in running.playing and running.waiting:
                share = running.waiting.popleft()
                steps = running.env_steps or running.trained_steps
                future = actor.apply(_play, running.weights, steps, share, running.seed)
                running.playing[index] = (future, share)

    def _ended(self, running: _Running) -> Evaluation:
        self._running = None
        metrics = get_metrics()
        metrics.counters[EVALUATIONS] += 1
        metrics.counters[_LAST] = running.report
        metrics.timer("evaluate").push(metrics.clock() - running.begun)
        records = [record for _, share in sorted(running.records.items()) for record in share]
        return Evaluation(Scores.of(records), running.env_steps, running.trained_steps)


def _play(worker: RolloutWorker, weights: dict[str, Array], steps: int, share: range, seed: int) -> list[EpisodeRecord]:
    """Runs where the evaluator lives."""
    worker.set_weights(weights)
    worker.set_global_step(steps)
    return evaluate(worker.policy, worker.spec.env, len(share), seed, first=share.start)
