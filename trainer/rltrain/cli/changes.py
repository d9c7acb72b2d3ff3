"""A job's story as it happens: one line for each change, none for a look that found nothing new."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.cli.cluster import Cluster
from rltrain.cli.jobs import JobView, duration

PROGRESS_SECONDS = 10.0
"""Least time between two lines of steps alone."""


class Changes:
    """What is new about a job since the last look."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._told: dict[str, tuple[str, ...]] = {}
        self._clock = clock
        self._progress_at = float("-inf")

    def lines(self, job: JobView) -> Iterator[str]:
        """A line for each condition, the state and, now and then, the progress that isn't what it was."""
        for condition in job.status.conditions:
            if condition.status == "Unknown" and condition.type not in self._told:
                continue
            if condition.type in ("Succeeded", "Failed") and condition.status == "False":
                continue
            what = (condition.status, condition.reason, condition.message)
            if self._is_new(condition.type, *what):
                yield f"{condition.type}={condition.status} {condition.reason}: {condition.message}"
        if self._is_new("state", job.state):
            yield f"state {job.state}"
        yield from self._progress(job)

    def _progress(self, job: JobView) -> Iterator[str]:
        progress = job.status.progress
        if progress is None or progress.steps == 0:
            return
        if self._clock() - self._progress_at >= PROGRESS_SECONDS and self._is_new("steps", str(progress.steps)):
            self._progress_at = self._clock()
            yield progress_line(job)

    def _is_new(self, key: str, *what: str) -> bool:
        before, self._told[key] = self._told.get(key), what
        return before != what


def progress_line(job: JobView) -> str:
    """Steps, return, speed and time left in one line."""
    progress = job.status.progress
    assert progress is not None
    parts = [f"{progress.steps} steps"]
    if progress.episode_return_mean is not None:
        parts.append(f"return {progress.episode_return_mean:.6g}")
    if progress.evaluation_return_mean is not None:
        parts.append(f"evaluated {progress.evaluation_return_mean:.6g}")
    if progress.steps_per_second is not None:
        parts.append(f"{progress.steps_per_second:.0f} steps/s")
    if progress.eta_seconds is not None and not job.finished:
        parts.append(f"{duration(progress.eta_seconds)} left")
    return ", ".join(parts)


def to_the_end(cluster: Cluster, job: JobView) -> Iterator[JobView]:
    """The job as it is and each time that it changes, until it is finished.

    Raises:
        RltrainError: it was deleted meanwhile.
    """
    for raw in cluster.follow(names.PLURAL, job.name):
        if raw is None or raw["metadata"]["uid"] != job.uid:
            raise RltrainError(f"{names.KIND} {job.name} was deleted")
        yield (seen := JobView(raw))
        if seen.finished:
            return


def wait_finished(cluster: Cluster, job: JobView, say: Callable[[str], None]) -> JobView:
    """Follow a job `to_the_end`, telling each change in words."""
    changes = Changes()
    seen = job
    for seen in to_the_end(cluster, job):
        for line in changes.lines(seen):
            say(f"{datetime.now():%H:%M:%S}  {line}")
    return seen
