"""A run on this machine: an embedded Ray for what is remote, or everything in this process."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rltrain.api.job import RLTrainingJob
from rltrain.flow import Backend
from rltrain.flow.serial import SerialBackend
from rltrain.runtime.clocks import STEPS_PER_SECOND
from rltrain.runtime.console import LiveConsole, PlainConsole
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.observers import Observer
from rltrain.runtime.preflight import check_environment, check_users_code
from rltrain.runtime.result import RunResult
from rltrain.runtime.roles import gpus_by_role, has_actors, slots_of
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.session import local_session
from rltrain.runtime.train import train

log = logging.getLogger(__name__)


def run_locally(
    job: RLTrainingJob,
    path: Path,
    *,
    resume: bool,
    serial: bool,
    interrupts: Interrupts,
    watchers: Sequence[Observer] = (),
) -> RunResult:
    """Train until a stop criterion is reached; progress goes to stderr.

    Args:
        path: the run directory.
        resume: go on with the run that it holds.
        serial: everything in this process, the same each time.
        watchers: told of everything, beside the files and the console.

    Raises:
        RltrainError: it can't begin or can't go on.
    """
    check_users_code(job)
    check_environment(job)
    directory = RunDirectory(path, job.spec.checkpoint.keep)
    resume_from = job.spec.checkpoint.resume_from
    with directory.hold(resume=resume):
        if resume and not directory.checkpoints:
            log.warning("%s has no checkpoint yet: starting at step 0", path)
        if serial:
            log.warning("serial: the clock shows one second for every %s steps", f"{STEPS_PER_SECOND:,}")
        return train(
            job,
            directory,
            owner=f"pid {os.getpid()}",
            resume_from=None if resume_from is None else Path(resume_from),
            session=lambda: _session(job, serial, interrupts),
            watchers=[_console(job), *watchers],
            interrupts=interrupts,
            for_good=lambda outcome: outcome.state != "Interrupted",
            cores=os.cpu_count(),
        )


@contextmanager
def _session(job: RLTrainingJob, serial: bool, interrupts: Interrupts) -> Iterator[Backend]:
    if serial or not has_actors(job):
        yield SerialBackend(serial)
        return
    with local_session(slots_of(job), interrupts.on_leaving):
        from rltrain.flow.ray_backend import RayBackend

        yield RayBackend(gpus_by_role(job))


def _console(job: RLTrainingJob) -> Observer:
    return LiveConsole(sys.stderr, job.spec.stop) if sys.stderr.isatty() else PlainConsole(sys.stderr)
