"""What a start of a run saves, and which of it is the best."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from rltrain.api.errors import StorageFull, Superseded
from rltrain.api.job import RLTrainingJob
from rltrain.api.status import CheckpointStatus
from rltrain.flow import MetricsContext, ShardFailure
from rltrain.runtime.attempts import Attempts
from rltrain.runtime.build import Training
from rltrain.runtime.checkpoint import Checkpoint
from rltrain.runtime.checkpoint_store import Best, Metric
from rltrain.runtime.observers import Observers
from rltrain.runtime.rundir import RunDirectory

log = logging.getLogger(__name__)

T = TypeVar("T")


class Saver:
    """Saves whole checkpoints and tells of them.

    Args:
        newest: what the run goes on from.

    Attributes:
        newest: the newest checkpoint.
        candidate: one whose weights are being evaluated; it stays until `judge`.
    """

    def __init__(
        self,
        job: RLTrainingJob,
        directory: RunDirectory,
        attempt: Attempts,
        observers: Observers,
        metrics: MetricsContext,
        newest: Checkpoint | None,
    ) -> None:
        self.newest = newest
        self.candidate: Checkpoint | None = None
        self._directory = directory
        self._attempt = attempt
        self._observers = observers
        self._metrics = metrics
        self._keeps_best = job.spec.checkpoint.keep_best
        self._metric: Metric = "evaluation" if job.spec.config.evaluation_interval else "episodes"

    @property
    def best(self) -> Best | None:
        """The best of the run's checkpoints, over all attempts."""
        return self._directory.checkpoints.best() if self._keeps_best else None

    def save(self, training: Training) -> Checkpoint:
        """Raises StorageFull, Superseded."""
        if self._attempt.superseded:
            raise Superseded(f"a newer attempt of this run writes to {self._directory.path}; this one stops")
        with self._metrics.timer("checkpoint")():
            parts = despite_losses(training, training.get_state)
            summary = training.summary(self._attempt.number, parts)
            checkpoint = self._directory.checkpoints.save(training.identity, summary, parts, spared=self.candidate)
        self.newest = checkpoint
        training.saved(checkpoint)
        if self._metric == "episodes":
            self._judge(checkpoint, checkpoint.summary.episode_return_mean)
        self._tell()
        return checkpoint

    def save_or_complain(self, training: Training) -> Checkpoint | None:
        """The same where training goes on without; raises Superseded."""
        try:
            return self.save(training)
        except StorageFull as error:
            log.warning("%s; training goes on and the save is tried again", error)
            return None

    def save_candidate(self, training: Training) -> Checkpoint | None:
        """Save what is about to be evaluated, where the best is to be kept."""
        self.candidate = self.save_or_complain(training) if self._keeps_best else None
        return self.candidate

    def judge(self, return_mean: float) -> None:
        """Say how good the candidate is."""
        if self.candidate is not None:
            candidate, self.candidate = self.candidate, None
            self._judge(candidate, return_mean)
            self._tell()

    def _judge(self, checkpoint: Checkpoint, return_mean: float | None) -> None:
        """Values of different metrics can't be compared: the newer one stands then."""
        if not self._keeps_best or return_mean is None:
            return
        before = self.best
        if before is None or before.metric != self._metric or return_mean > before.return_mean:
            try:
                self._directory.checkpoints.mark_best(Best(checkpoint.path, self._metric, return_mean))
            except OSError as error:
                log.warning("%s is the best checkpoint, but can't be marked as it: %s", checkpoint.path, error)
        newest = checkpoint if self.newest is None else self.newest
        self._directory.checkpoints.prune(newest.path)

    def _tell(self) -> None:
        newest, best = self.newest, self.best
        if newest is not None:
            self._observers.saved(
                CheckpointStatus(
                    path=str(newest.path),
                    env_steps=newest.summary.env_steps,
                    saved_at=now(),
                    best_path=None if best is None else str(best.path),
                    best_return_mean=None if best is None else best.return_mean,
                )
            )


def despite_losses(training: Training, read: Callable[[], T]) -> T:
    """What `read` brings; an actor that is lost meanwhile is replaced and `read` called again."""
    while True:
        try:
            return read()
        except ShardFailure as failure:
            training.failed(failure)


def now() -> str:
    """RFC 3339, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
