"""A run on this machine: an embedded Ray, or everything in this process."""

import contextlib
import os
import sys
from pathlib import Path

from rltrain.api.errors import RltrainError
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved_yaml
from rltrain.flow import Backend
from rltrain.flow.serial import SerialBackend
from rltrain.runtime.build import gpus_of, replicas_of, role_of
from rltrain.runtime.checkpoint import Attempts
from rltrain.runtime.console import LiveConsole, PlainConsole
from rltrain.runtime.driver import Driver, failure, latest_checkpoint
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.observers import Observer, Observers, ResultsFile, TensorBoard
from rltrain.runtime.result import RunResult
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.session import local_session


def run_locally(job: RLTrainingJob, path: Path, *, resume: bool, serial: bool, interrupts: Interrupts) -> RunResult:
    """Train until a stop criterion is reached; progress goes to stderr.

    Raises:
        RltrainError: it can't begin or can't go on.
    """
    directory = RunDirectory(path, job.spec.checkpoint.keep)
    directory.open(resume=resume)
    resume_from = job.spec.checkpoint.resume_from
    checkpoint = latest_checkpoint(directory, None if resume_from is None else Path(resume_from))
    directory.write_manifest(resolved_yaml(job))
    attempt = Attempts(directory.attempts, owner=f"pid {os.getpid()}")
    resumed_at = checkpoint.summary.env_steps if checkpoint else None
    console: Observer = LiveConsole(sys.stderr, job.spec.stop) if sys.stderr.isatty() else PlainConsole(sys.stderr)
    observers = Observers([ResultsFile(directory.results, resumed_at), TensorBoard(path, resumed_at), console])
    try:
        with contextlib.ExitStack() as stack:
            backend: Backend = SerialBackend()
            if not serial:
                stack.enter_context(local_session(replicas_of(job), interrupts.on_leaving))
                from rltrain.flow.ray_backend import RayBackend

                backend = RayBackend(gpus_of(role_of(job)))
            outcome = Driver(job, directory, backend, observers, interrupts, attempt, checkpoint).run()
            if outcome.state != "Interrupted":
                directory.finish(outcome)
    except RltrainError as error:
        observers.finished(failure(error, checkpoint))
        raise
    observers.finished(outcome)
    return outcome
