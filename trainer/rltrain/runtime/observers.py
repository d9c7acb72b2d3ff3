"""Who is told how a run goes: files, terminal, TensorBoard, the Kubernetes API."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rltrain.api.finite import finite
from rltrain.api.status import CheckpointStatus, Progress
from rltrain.ops import Result
from rltrain.runtime.result import RunResult

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Told by the driver; must not raise for a reason that doesn't end training."""

    def progress(self, progress: Progress) -> None:
        """About once a second, and at each change of phase."""

    def result(self, result: Result) -> None:
        """At each report."""

    def saved(self, checkpoint: CheckpointStatus) -> None:
        """After each checkpoint."""

    def finished(self, outcome: RunResult) -> None:
        """At the end, whatever it was."""


class Silent:
    """Base of observers that care for some events only."""

    def progress(self, progress: Progress) -> None: ...
    def result(self, result: Result) -> None: ...
    def saved(self, checkpoint: CheckpointStatus) -> None: ...
    def finished(self, outcome: RunResult) -> None: ...


class ResultsFile(Silent):
    """results.jsonl: one line a report.

    Args:
        path: of the file.
        resumed_at: steps that the run goes on from; later lines are of steps that will come again, and go.
    """

    def __init__(self, path: Path, resumed_at: int | None) -> None:
        self._path = path
        self._complained = False
        if path.exists():
            kept = [] if resumed_at is None else _lines_until(path, resumed_at)
            temporary = path.with_name(f".{path.name}")
            temporary.write_text("".join(kept))
            temporary.replace(path)

    def result(self, result: Result) -> None:
        line = json.dumps(finite(result.to_json())) + "\n"
        try:
            with self._path.open("a") as file:
                file.write(line)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("a report can't be written to %s: %s; training goes on", self._path, error)
            self._complained = True


class TensorBoard(Silent):
    """TensorBoard events in the run directory."""

    def __init__(self, folder: Path, resumed_at: int | None) -> None:
        from tensorboardX import SummaryWriter  # type: ignore[import-untyped]  # has no annotations

        # Steps after the checkpoint come again: without the purge their curves would run back and forth.
        purge = None if resumed_at is None else resumed_at + 1
        self._writer = SummaryWriter(str(folder), purge_step=purge, flush_secs=10)

    def result(self, result: Result) -> None:
        values: dict[str, Any] = {
            "episode_return_mean": result.episode_return_mean,
            "episode_length_mean": result.episode_length_mean,
            "steps_per_second": result.steps_per_second,
            "num_healthy_workers": result.num_healthy_workers,
            "num_wanted_workers": result.num_wanted_workers,
            "trained_steps": result.trained_steps,
            **{f"exploration/{name}": value for name, value in result.exploration.items()},
            **{f"learner/{name}": value for name, value in result.info.get("learner", {}).items()},
            **{f"custom_metrics/{name}": value for name, value in (result.custom_metrics or {}).items()},
            **{f"added/{name}": value for name, value in result.added.items()},
            **{f"timers_ms/{name}": value for name, value in result.timers_ms.items()},
        }
        for name, value in values.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, value, result.steps)
        evaluation = result.evaluation or {}
        for name, value in evaluation.items():
            # Where its weights are from, and not where training has come to meanwhile.
            self._writer.add_scalar(f"evaluation/{name}", value, evaluation["env_steps"] or evaluation["trained_steps"])

    def finished(self, outcome: RunResult) -> None:
        self._writer.close()


class Observers:
    """All of them, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def progress(self, progress: Progress) -> None:
        for observer in self._observers:
            observer.progress(progress)

    def result(self, result: Result) -> None:
        for observer in self._observers:
            observer.result(result)

    def saved(self, checkpoint: CheckpointStatus) -> None:
        for observer in self._observers:
            observer.saved(checkpoint)

    def finished(self, outcome: RunResult) -> None:
        for observer in self._observers:
            observer.finished(outcome)


def _lines_until(path: Path, steps: int) -> list[str]:
    kept: list[str] = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            read = json.loads(line)
            if int(read["env_steps"] or read["trained_steps"]) <= steps:
                kept.append(line + "\n")
        except (ValueError, KeyError, TypeError):
            continue  # half a line, from a crash
    return kept
