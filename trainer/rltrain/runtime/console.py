"""Progress for people: a live line on a terminal, a plain one every ten seconds elsewhere."""

import time
from typing import Final, TextIO

from rich.console import Console as RichConsole
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from rltrain.api.job import Stop
from rltrain.api.status import CheckpointStatus, Progress
from rltrain.runtime.observers import Silent
from rltrain.runtime.result import RunResult

PLAIN_SECONDS: Final = 10.0


class PlainConsole(Silent):
    """Lines for a pipe or a pod's log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = float("-inf")
        self._phase: tuple[object, ...] | None = None
        self._saved: tuple[str | None, str | None] = (None, None)

    def progress(self, progress: Progress) -> None:
        phase = (progress.phase, progress.workers_healthy if progress.phase == "Starting" else None)
        if phase == self._phase and time.monotonic() - self._last < PLAIN_SECONDS:
            return
        self._last, self._phase = time.monotonic(), phase
        self._stream.write(describe(progress) + "\n")
        self._stream.flush()

    def saved(self, checkpoint: CheckpointStatus) -> None:
        if checkpoint.path != self._saved[0]:
            self._stream.write(f"checkpoint saved: {checkpoint.path}\n")
        if checkpoint.best_path != self._saved[1]:
            self._stream.write(
                f"the best so far, with return {checkpoint.best_return_mean:.2f}: {checkpoint.best_path}\n"
            )
        self._saved = (checkpoint.path, checkpoint.best_path)
        self._stream.flush()

    def finished(self, outcome: RunResult) -> None:
        if outcome.state != "Failed":  # whoever ends the process tells why
            self._stream.write(conclude(outcome) + "\n")
            self._stream.flush()


class LiveConsole(Silent):
    """A bar towards the nearest stop criterion, and the numbers beside it."""

    def __init__(self, stream: TextIO, stop: Stop) -> None:
        self._stop = stop
        self._console = RichConsole(file=stream)
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            # A second line would be left behind at each redraw of a narrow terminal.
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=self._console,
            transient=True,
            refresh_per_second=4,
        )
        self._task: TaskID = self._bar.add_task("starting", total=1.0)
        self._bar.start()

    def progress(self, progress: Progress) -> None:
        self._bar.update(self._task, completed=self._share(progress), description=describe(progress))

    def finished(self, outcome: RunResult) -> None:
        self._bar.stop()
        if outcome.state != "Failed":
            self._console.print(conclude(outcome), highlight=False, markup=False)

    def _share(self, progress: Progress) -> float:
        shares = [0.0]
        if self._stop.env_steps:
            shares.append(progress.env_steps / self._stop.env_steps)
        if self._stop.trained_steps:
            shares.append(progress.trained_steps / self._stop.trained_steps)
        if self._stop.episode_return_mean and progress.episode_return_mean is not None:
            shares.append(progress.episode_return_mean / self._stop.episode_return_mean)
        if self._stop.evaluation_return_mean and progress.evaluation_return_mean is not None:
            shares.append(progress.evaluation_return_mean / self._stop.evaluation_return_mean)
        return min(1.0, max(shares))


def describe(progress: Progress) -> str:
    """One line: steps, return, throughput, time left."""
    if progress.phase == "Starting":
        there = f": {progress.workers_healthy} of {progress.workers_wanted} workers are there"
        return f"starting{there if progress.workers_wanted else ''}"
    parts = [_steps(progress.env_steps, progress.trained_steps), f"{progress.episodes:,} episodes"]
    if progress.episode_return_mean is not None:
        parts.append(f"return {progress.episode_return_mean:.2f}")
    if progress.evaluation_return_mean is not None:
        parts.append(f"evaluated {progress.evaluation_return_mean:.2f}")
    if progress.steps_per_second is not None:
        parts.append(f"{progress.steps_per_second:,.0f} steps/s")
    if progress.workers_wanted:
        parts.append(f"{progress.workers_healthy}/{progress.workers_wanted} workers")
    if progress.eta_seconds is not None:
        parts.append(f"at most {duration(progress.eta_seconds)} left")
    return ", ".join(parts)


def conclude(outcome: RunResult) -> str:
    """One line: how it ended, and why."""
    if outcome.message is not None:
        return f"{outcome.state.lower()}: {outcome.message}"
    value = "none" if outcome.episode_return_mean is None else f"{outcome.episode_return_mean:.2f}"
    if outcome.evaluation_return_mean is not None:
        value += f", evaluated {outcome.evaluation_return_mean:.2f},"
    steps = _steps(outcome.env_steps, outcome.trained_steps)
    return (
        f"{outcome.state.lower()} ({outcome.stop_reason}): return {value} after {steps} in "
        f"{duration(outcome.time_s)}; checkpoint: {outcome.checkpoint or 'none'}"
    )


def _steps(sampled: int, trained: int) -> str:
    return f"{sampled:,} steps" if sampled or not trained else f"{trained:,} trained steps"


def duration(seconds: float) -> str:
    """2 h 5 min, 3 min 20 s, 12 s."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
