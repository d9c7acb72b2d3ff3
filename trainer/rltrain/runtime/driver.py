"""The driver: pulls a plan's dataflow until a stop criterion is reached, and saves and reports on the way."""

import logging
import time
from dataclasses import replace
from functools import partial
from typing import Final

from rltrain import user_code
from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved_yaml
from rltrain.api.status import Progress
from rltrain.callbacks import Callbacks
from rltrain.flow import Backend, MetricsContext, Signal
from rltrain.flow.metrics import EPISODES, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.ops.report import Result, summarise
from rltrain.runtime.attempts import Attempts
from rltrain.runtime.build import Training
from rltrain.runtime.checkpoint import Checkpoint
from rltrain.runtime.clocks import StepClock, WallClock
from rltrain.runtime.criteria import Standing, eta_seconds, reached, unjudged
from rltrain.runtime.evaluation import learned_weights
from rltrain.runtime.evaluators import Evaluation, Evaluators
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.mounted import MountedManifest
from rltrain.runtime.observers import Observers
from rltrain.runtime.restoring import restore
from rltrain.runtime.result import RunResult, StopReason
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.saving import Saver, despite_losses, now
from rltrain.runtime.scaling import Scaling

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0
"""Longest that the driver waits for its actors before it looks at clocks and signals."""
PROGRESS_SECONDS: Final = 1.0
EVALUATION_SECONDS: Final = 60.0
"""How long the end of training waits for an evaluation that is under way."""
GATHER_SECONDS: Final = 60.0
"""How long training waits for the last workers once enough of them are there."""


class Driver:
    """One start of a run.

    Args:
        job: the resolved manifest.
        directory: opened run directory.
        backend: where actors live.
        observers: told of everything.
        interrupts: active signal handlers.
        attempt: this start's record.
        checkpoint: what to go on from.
        manifest: the mounted one, whose changes are followed; None where nobody edits a running job.

    Attributes:
        begun: whether the run is this start's: nothing about it was refused.
    """

    def __init__(
        self,
        job: RLTrainingJob,
        directory: RunDirectory,
        backend: Backend,
        observers: Observers,
        interrupts: Interrupts,
        attempt: Attempts,
        checkpoint: Checkpoint | None,
        manifest: MountedManifest | None = None,
    ) -> None:
        self._job = job
        self._directory = directory
        self._observers = observers
        self._interrupts = interrupts
        self._attempt = attempt
        self._resumed = checkpoint
        self.begun = False
        self._metrics = MetricsContext(window=job.spec.config.metrics_num_episodes_for_smoothing)
        self._scaling = Scaling(job, directory, manifest)
        self._saver = Saver(job, directory, attempt, observers, self._metrics, checkpoint)
        clock = StepClock(self._metrics) if backend.serial else WallClock()
        self._clock = self._metrics.clock = clock
        self._metrics.real_time = not backend.serial
        self._backend = backend
        self._speed: float | None = None
        self._evaluated: Evaluation | None = None
        self._callbacks = Callbacks(job.spec.config.callbacks)
        self._told = (float("-inf"), (0, 0))

    def run(self) -> RunResult:
        """Train until something ends it.

        Raises:
            RltrainError: training can't go on; nothing more is saved then.
        """
        self._interrupts.install()
        with self._metrics.active():
            training = Training(self._job, self._backend, self._metrics)
            try:
                if self._resumed is not None:
                    restore(training, self._resumed, as_seeded=self._backend.serial)
                # A resume that is refused leaves the run as it was.
                self._directory.write_manifest(resolved_yaml(self._job))
                self._directory.write_code(user_code.folders())
                self._directory.unfinish()
                self.begun = True
                if not self._gather(training):
                    return self._interrupted(training)
                self._clock.begin(self._resumed.summary.time_s if self._resumed else 0.0)
                return self._loop(training, self._first_report(training))
            finally:
                training.close()

    def _gather(self, training: Training) -> bool:
        """Wait until the workers are there; False when interrupted meanwhile."""
        workers = training.workers
        enough_at: float | None = None
        while not self._interrupts.asked:
            self._scaling.follow(training)
            training.refresh()
            healthy = len(workers.actors())
            self._tell(training, "Starting")
            complete = training.complete()
            if healthy >= workers.wanted and complete:
                return True
            if healthy >= workers.minimum and complete:
                enough_at = time.monotonic() if enough_at is None else enough_at
                if time.monotonic() - enough_at >= GATHER_SECONDS:
                    log.warning("training begins with %d of %d workers", healthy, workers.wanted)
                    return True
            pending = training.pending()
            self._backend.wait(pending, TICK_SECONDS) if pending else time.sleep(0.1)
        return False

    def _first_report(self, training: Training) -> dict[str, object] | None:
        """For the first result: what was restored, with hashes computed from the objects that now are there."""
        checkpoint = self._resumed
        self._tell(training, "Training", urgent=True)
        if checkpoint is None:
            return None
        hashes = despite_losses(training, lambda: training.hashes(training.get_state()))
        log.info("resumed from %s at %d steps; restored: %s", checkpoint.path, checkpoint.summary.steps, hashes)
        return {
            "checkpoint": checkpoint.path.name,
            "env_steps": checkpoint.summary.env_steps,
            "attempt": self._attempt.number,
            "hashes": hashes,
        }

    def _loop(self, training: Training, resumed: dict[str, object] | None) -> RunResult:
        spec = self._job.spec
        stop, every = spec.stop, spec.checkpoint.every_seconds
        tick = partial(training.flow.tick, TICK_SECONDS)
        self._metrics.marks.setdefault("last_checkpoint", 0.0)
        while True:
            reason = reached(stop, self._scaling.job.spec.run_policy, self._standing())
            if reason is not None:
                return self._finish(training, reason, resumed)
            if self._interrupts.asked:
                return self._interrupted(training)
            if self._clock() - self._metrics.marks["last_checkpoint"] >= every:
                self._metrics.marks["last_checkpoint"] = self._clock()
                self._saver.save_or_complain(training)
            self._scaling.follow(training)
            item = despite_losses(training, tick)
            if not isinstance(item, Signal):
                self._scaling.measure(training)
                self._report(item, resumed, self._evaluate(training))
                resumed = None
            self._tell(training, "Training")

    def _report(self, result: Result, resumed: dict[str, object] | None, evaluation: Evaluation | None) -> None:
        self._speed = result.steps_per_second
        told = None if evaluation is None else evaluation.to_json()
        result = replace(result, resumed=resumed, evaluation=told)
        self._observers.result(replace(result, added=self._callbacks.on_train_result(result.to_json())))

    def _evaluate(self, training: Training) -> Evaluation | None:
        """Begin an evaluation where one is due, at once when another has ended; returns one that has."""
        evaluators = training.evaluators
        if evaluators is None:
            return None
        ended = self._judged(evaluators.poll())
        if evaluators.due():
            self._begin_evaluation(training, evaluators)
        return self._judged(evaluators.poll()) or ended

    def _begin_evaluation(self, training: Training, evaluators: Evaluators) -> None:
        saved = self._saver.save_candidate(training)
        weights = training.newest_weights() if saved is None else learned_weights(saved)
        if weights is not None:
            evaluators.begin(weights, None if saved is None else saved.summary)

    def _judged(self, evaluation: Evaluation | None) -> Evaluation | None:
        if evaluation is not None:
            self._evaluated = evaluation
            self._saver.judge(evaluation.scores.episode_return_mean)
        return evaluation

    def _last_evaluation(self, training: Training) -> Evaluation | None:
        """One that is under way when training ends, and one of the last weights where the last report makes it due.

        They are waited for, but not for ever.
        """
        evaluators = training.evaluators
        if evaluators is None:
            return None
        deadline = time.monotonic() + EVALUATION_SECONDS
        last = self._awaited(evaluators, deadline)
        if evaluators.due(reports_more=1) and (self._evaluated is None or self._evaluated.steps < self._metrics.steps):
            self._begin_evaluation(training, evaluators)
            last = self._awaited(evaluators, deadline) or last
        return last

    def _awaited(self, evaluators: Evaluators, deadline: float) -> Evaluation | None:
        while not self._interrupts.asked:
            evaluation = self._judged(evaluators.poll())
            pending = evaluators.pending()
            if evaluation is not None or not pending or time.monotonic() >= deadline:
                return evaluation
            self._backend.wait(pending, TICK_SECONDS)
        return None

    def _finish(self, training: Training, reason: StopReason, resumed: dict[str, object] | None) -> RunResult:
        self._saver.save(training)
        evaluation = None if reason == "deadline" else self._last_evaluation(training)
        self._report(summarise(training.workers, self._speed), resumed, evaluation)
        if told := unjudged(self._job.spec.stop, len(self._metrics.episode_returns), self._metrics.window):
            log.warning("%s", told)
        outcome = self._outcome(reason)
        if reason == "deadline":
            limit = self._scaling.job.spec.run_policy.active_deadline_seconds
            outcome = replace(
                outcome,
                state="Failed",
                reason="DeadlineExceeded",
                exit_code=names.EXIT_DEADLINE,
                message=f"training took longer than runPolicy.activeDeadlineSeconds ({limit} s): raise it, or lower "
                "the stop criterion",
            )
        return outcome

    def _interrupted(self, training: Training) -> RunResult:
        by_user = self._interrupts.asked == "interrupted"
        self._saver.save_or_complain(training)
        checkpoint = self._saver.newest
        return replace(
            self._outcome("interrupted" if by_user else "terminated"),
            state="Interrupted",
            reason="Interrupted" if by_user else "Terminated",
            exit_code=names.EXIT_INTERRUPTED if by_user else names.EXIT_TERMINATED,
            message=f"stopped at {self._metrics.steps:,} steps; "
            f"{f'saved in {checkpoint.path}' if checkpoint else 'nothing was saved'}: go on with --resume",
        )

    def _standing(self) -> Standing:
        metrics = self._metrics
        sampled, trained = metrics.counters[STEPS_SAMPLED], metrics.counters[STEPS_TRAINED]
        evaluated = None if self._evaluated is None else self._evaluated.scores.episode_return_mean
        return Standing(
            sampled,
            metrics.clock(),
            metrics.episode_return_mean,
            self._speed,
            trained,
            evaluated,
            smooth=len(metrics.episode_returns) >= metrics.window,
        )

    def _outcome(self, reason: StopReason) -> RunResult:
        standing, checkpoint, best = self._standing(), self._saver.newest, self._saver.best
        return RunResult(
            state="Succeeded",
            stop_reason=reason,
            env_steps=standing.env_steps,
            trained_steps=standing.trained_steps,
            episode_return_mean=standing.episode_return_mean,
            evaluation_return_mean=standing.evaluation_return_mean,
            time_s=standing.time_s,
            checkpoint=None if checkpoint is None else str(checkpoint.path),
            best_checkpoint=None if best is None else str(best.path),
        )

    def _tell(self, training: Training, phase: str, urgent: bool = False) -> None:
        healthy, wanted = there = len(training.workers.actors()), training.workers.wanted
        if not urgent and there == self._told[1] and time.monotonic() - self._told[0] < PROGRESS_SECONDS:
            return
        self._told = (time.monotonic(), there)
        standing = self._standing()
        self._observers.progress(
            Progress.model_validate(
                {
                    "phase": phase,
                    "attempt": self._attempt.number,
                    "resumed_from_steps": self._resumed.summary.steps if self._resumed else None,
                    "env_steps": standing.env_steps,
                    "trained_steps": standing.trained_steps,
                    "episodes": self._metrics.counters[EPISODES],
                    "episode_return_mean": standing.episode_return_mean,
                    "evaluation_return_mean": standing.evaluation_return_mean,
                    "steps_per_second": standing.steps_per_second,
                    "workers_healthy": healthy,
                    "workers_wanted": wanted,
                    "rollouts_proposed": self._scaling.proposed,
                    "eta_seconds": eta_seconds(self._job.spec.stop, standing),
                    "updated_at": now(),
                }
            )
        )
