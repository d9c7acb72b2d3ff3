"""Progress in the job's status, written by the driver itself under a field manager of its own."""

import logging
import os
import random
import threading
import time
from typing import Any, Final, cast

from rltrain.api import names
from rltrain.api.status import CheckpointStatus, Progress
from rltrain.ops import Result
from rltrain.runtime.pod import Pod
from rltrain.runtime.result import RunResult

log = logging.getLogger(__name__)

SECONDS: Final = 30.0
REQUEST_SECONDS: Final = 5.0
FINAL_TRIES: Final = 3
_UNSTEADY: Final = ("updated_at", "eta_seconds", "steps_per_second")
"""Fields that change all the time and alone are no news."""


def kubernetes_progress(pod: Pod) -> "KubernetesProgress | None":
    """The observer for a job in a cluster; None where the pod has no credentials."""
    from kubernetes import client, config

    try:
        cast(Any, config.load_incluster_config)()
    except config.ConfigException as error:
        log.warning("progress isn't reported to the Kubernetes API: %s", error)
        return None
    every = float(os.environ.get("RLTRAIN_PROGRESS_SECONDS", SECONDS))
    return KubernetesProgress(client.CustomObjectsApi(), pod.namespace, pod.job, every)


class KubernetesProgress:
    """Sets `status.progress` and `status.checkpoint`: at once on a change of phase or workers, else now and then.

    What a former driver said of the checkpoint stands until this one has saved another. Everything is sent by a thread
    of its own: training never waits for the API, and goes on without it.

    Args:
        api: a `CustomObjectsApi`.
        every_s: seconds between two updates; jitter is added so that many jobs don't report in step.
    """

    def __init__(self, api: Any, namespace: str, name: str, every_s: float) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._every_s = every_s
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._progress: Progress | None = None
        self._checkpoint: CheckpointStatus | None = None
        self._urgent = False
        self._closed = False
        self._reachable = True
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def progress(self, progress: Progress) -> None:
        with self._lock:
            last, self._progress = self._progress, progress
            if last is None or _standing(last) != _standing(progress):
                self._urgent = True
                self._wake.set()

    def result(self, result: Result) -> None: ...

    def saved(self, checkpoint: CheckpointStatus) -> None:
        with self._lock:
            first, self._checkpoint = self._checkpoint is None, checkpoint
            if first:
                self._urgent = True
                self._wake.set()

    def finished(self, outcome: RunResult) -> None:
        """Send the last word, and wait for it as long as it may take to be tried a few times."""
        with self._lock:
            if self._progress is not None and outcome.state != "Interrupted":
                self._progress = self._progress.model_copy(
                    update={
                        "phase": "Finished",
                        "stop_reason": outcome.stop_reason,
                        "env_steps": max(outcome.env_steps, self._progress.env_steps),
                        "trained_steps": max(outcome.trained_steps, self._progress.trained_steps),
                        "episode_return_mean": outcome.episode_return_mean,
                        "eta_seconds": None,
                    }
                )
            self._closed = True
            self._wake.set()
        self._thread.join(FINAL_TRIES * (REQUEST_SECONDS + 1.0))

    def _run(self) -> None:
        sent: dict[str, Any] | None = None
        while True:
            self._wake.wait(self._every_s * random.uniform(0.9, 1.1))
            with self._lock:
                self._wake.clear()
                closed, urgent, self._urgent = self._closed, self._urgent, False
                status = self._status()
            if urgent or closed or _news(status) != _news(sent):
                for _ in range(FINAL_TRIES if closed else 1):
                    if self._send(status):
                        sent = status
                        break
                    time.sleep(1.0)
            if closed:
                return

    def _status(self) -> dict[str, Any]:
        """With nulls, which take a former driver's fields away."""
        status: dict[str, Any] = {}
        if self._progress is not None:
            status["progress"] = self._progress.model_dump(mode="json", by_alias=True)
        if self._checkpoint is not None:
            status["checkpoint"] = self._checkpoint.model_dump(mode="json", by_alias=True)
        return status

    def _send(self, status: dict[str, Any]) -> bool:
        """By a merge patch: an apply would take back all that isn't in it, and costs the API server more."""
        try:
            self._api.patch_namespaced_custom_object_status(
                names.GROUP,
                names.VERSION,
                self._namespace,
                names.PLURAL,
                self._name,
                {"status": status},
                field_manager=names.DRIVER_FIELD_MANAGER,
                _content_type="application/merge-patch+json",
                _request_timeout=REQUEST_SECONDS,
            )
        except Exception as error:  # whatever is wrong with the API, training goes on
            if self._reachable:
                log.warning("progress can't be reported, training goes on: %s", str(error).splitlines()[0])
            self._reachable = False
            return False
        if not self._reachable:
            log.info("progress is reported again")
        self._reachable = True
        return True


def _standing(progress: Progress) -> tuple[object, ...]:
    counts = progress.workers_healthy, progress.workers_wanted, progress.rollouts_proposed
    return progress.phase, progress.attempt, progress.stop_reason, *counts


def _news(status: dict[str, Any] | None) -> Any:
    """A status without what changes all the time."""
    if status is None:
        return None
    progress = Progress.model_validate(status["progress"]) if "progress" in status else None
    return None if progress is None else progress.model_dump(exclude=set(_UNSTEADY)), status.get("checkpoint")
