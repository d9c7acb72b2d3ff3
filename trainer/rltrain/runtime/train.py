"""One start of a run, in its opened directory: the same on this machine and in a head pod."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from rltrain.api.doubts import doubts
from rltrain.api.errors import RltrainError
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved
from rltrain.flow import Backend
from rltrain.runtime.checkpoint import Checkpoint
from rltrain.runtime.checkpoint_store import find_checkpoint
from rltrain.runtime.differences import differences
from rltrain.runtime.driver import Driver
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.mounted import MountedManifest
from rltrain.runtime.observers import Observer, Observers, ResultsFile
from rltrain.runtime.outcome_so_far import OutcomeSoFar
from rltrain.runtime.result import RunResult
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.tensorboard import TensorBoard

log = logging.getLogger(__name__)


def train(
    job: RLTrainingJob,
    directory: RunDirectory,
    *,
    owner: str,
    resume_from: Path | None,
    session: Callable[[], AbstractContextManager[Backend]],
    watchers: Sequence[Observer],
    interrupts: Interrupts,
    for_good: Callable[[RunResult], bool],
    cores: int | None = None,
    manifest: MountedManifest | None = None,
) -> RunResult:
    """Go on from the newest checkpoint there is until something ends the run.

    Args:
        directory: opened.
        owner: who starts it, for the attempt's record.
        resume_from: where a first start takes its state from, when the directory has none.
        session: brings the back end, once everything that can be refused has been looked at.
        watchers: told of everything, after the files.
        for_good: which outcomes end the run for good, as finished.json then says.
        cores: processors that all of it shares.
        manifest: the mounted one, whose changes are followed; None where nobody edits a running job.

    Raises:
        RltrainError: it can't begin or can't go on; the watchers have been told.
    """
    attempt = directory.attempt(owner)
    checkpoint = _latest(directory, resume_from)
    resumed_at = checkpoint.summary.steps if checkpoint else None
    files = [ResultsFile(directory.results, resumed_at), TensorBoard(directory.path, resumed_at)]
    so_far = OutcomeSoFar(checkpoint)
    observers = Observers([so_far, *files, *watchers])
    if checkpoint is not None and (changed := differences(checkpoint.summary.job["spec"], resolved(job)["spec"])):
        log.warning("the manifest has changed since the checkpoint: %s", "; ".join(changed))
    for doubt in doubts(job, cores):
        log.warning("%s", doubt)
    begun = False
    try:
        with session() as backend:
            driver = Driver(job, directory, backend, observers, interrupts, attempt, checkpoint, manifest)
            try:
                outcome = driver.run()
            finally:
                begun = driver.begun
        if for_good(outcome):
            directory.finish(outcome)
    except RltrainError as error:
        outcome = so_far.failed(error)
        if begun and for_good(outcome):
            with suppress(RltrainError):  # what ended the run is what the user must read
                directory.finish(outcome)
        observers.finished(outcome)
        raise
    observers.finished(outcome)
    return outcome


def _latest(directory: RunDirectory, resume_from: Path | None) -> Checkpoint | None:
    """The directory's newest whole checkpoint, else what `resume_from` names. Raises CheckpointUnusable."""
    own = directory.checkpoints.newest()
    if own is not None or resume_from is None:
        return own
    return find_checkpoint(resume_from)
