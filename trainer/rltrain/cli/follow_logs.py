"""Logs of a job from now to its end: each pod's as soon as it has one, the next attempt's after the last one's."""

import threading
import time
from typing import Final

import typer

from rltrain.api import names
from rltrain.api.errors import ApiUnreachable, RltrainError
from rltrain.api.seen import Object
from rltrain.cli.cluster import PATIENCE_SECONDS, Cluster
from rltrain.cli.jobs import JobView, pods_of
from rltrain.cli.pods import container_started, container_status, log_line, log_name
from rltrain.cli.refusals import NoSuchObject, Refused

LOOK_SECONDS: Final = 1.0
"""Time between two looks for new pods."""


class LogFollower:
    """Prints lines of many pods as they come.

    Args:
        cluster: where the job is.
        job: the job.
        role: the only role of interest, or None for all.
        tail: lines of each pod's past.
        output: form of the lines, see `log_line`.
    """

    def __init__(self, cluster: Cluster, job: JobView, role: str | None, tail: int | None, output: str | None) -> None:
        self._cluster = cluster
        self._job = job
        self._role = role
        self._tail = tail
        self._output = output
        self._lock = threading.Lock()
        self._streams: dict[tuple[str, int], threading.Thread] = {}
        self._told: str | None = None

    def run(self) -> None:
        """Print until the job is finished or gone."""
        lost_since: float | None = None
        while True:
            try:
                job = self._look()
                lost_since = None
            except ApiUnreachable:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > PATIENCE_SECONDS:
                    raise
                job = self._job
            if job is None or job.finished:
                break
            time.sleep(LOOK_SECONDS)
        for thread in self._streams.values():
            thread.join()
        self._tell("the job was deleted" if job is None else f"{job.state}: {job.why}")

    def _look(self) -> JobView | None:
        """Start a stream for each container that has none yet; the job as it is."""
        # The job first: once it says that it is finished, no pod is missed.
        try:
            job = JobView(self._cluster.get(names.PLURAL, self._job.name))
        except NoSuchObject:
            return None
        if job.uid != self._job.uid:
            return None
        for pod in pods_of(self._cluster, job, self._role):
            key = (str(pod["metadata"]["uid"]), int(container_status(pod).get("restartCount", 0)))
            if container_started(pod) and key not in self._streams:
                # Of restarts and later pods every line is new.
                tail = self._tail if not self._has_seen(pod) else None
                thread = threading.Thread(target=self._stream, args=(pod, tail), daemon=True)
                self._streams[key] = thread
                thread.start()
        if not any(thread.is_alive() for thread in self._streams.values()) and not job.finished and job.why:
            self._tell(f"waiting: {job.why}")
        return job

    def _has_seen(self, pod: Object) -> bool:
        return any(uid == pod["metadata"]["uid"] for uid, _ in self._streams)

    def _stream(self, pod: Object, tail: int | None) -> None:
        name = log_name(pod)
        try:
            for line in self._cluster.log_lines(pod["metadata"]["name"], follow=True, tail=tail):
                with self._lock:
                    typer.echo(log_line(pod, line, self._output))
        except (NoSuchObject, Refused):
            # Gone, or between two containers: the next look finds what follows.
            pass
        except RltrainError as error:
            self._tell(f"{name}: {error}")

    def _tell(self, words: str) -> None:
        """Say something about the logs, beside them, once."""
        with self._lock:
            if words != self._told:
                self._told = words
                typer.echo(words, err=True)
