"""Who is told how a run goes: files, terminal, the Kubernetes API; TensorBoard has a module of its own."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

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


class Recorder(Silent):
    """Base of observers that write reports to files, which must not end training.

    Args:
        what, where: words of the warning that tells the first failure in a row.
    """

    def __init__(self, what: str, where: Path) -> None:
        self._what = what
        self._where = where
        self._complained = False

    def result(self, result: Result) -> None:
        try:
            self.write(result)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("%s can't be written to %s: %s; training goes on", self._what, self._where, error)
            self._complained = True

    def write(self, result: Result) -> None:
        """Keep a report. Raises OSError."""
        raise NotImplementedError


class ResultsFile(Recorder):
    """results.jsonl: one line a report.

    Args:
        path: of the file.
        resumed_at: steps that the run goes on from; later lines are of steps that will come again, and go.
    """

    def __init__(self, path: Path, resumed_at: int | None) -> None:
        super().__init__("a report", path)
        if path.exists():
            kept = [] if resumed_at is None else _lines_until(path, resumed_at)
            temporary = path.with_name(f".{path.name}")
            temporary.write_text("".join(kept))
            temporary.replace(path)

    def write(self, result: Result) -> None:
        line = json.dumps(finite(result.to_json())) + "\n"
        with self._where.open("a") as file:
            file.write(line)


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
