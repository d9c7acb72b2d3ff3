"""A training that goes on from a checkpoint, or says why it can't."""

import logging

from rltrain.api.errors import CheckpointMismatch
from rltrain.runtime.build import Training
from rltrain.runtime.checkpoint import Checkpoint, require_same

log = logging.getLogger(__name__)


def restore(training: Training, checkpoint: Checkpoint, *, as_seeded: bool) -> None:
    """Take up what a checkpoint holds.

    Args:
        as_seeded: episodes are taken up again by their seeds, so that the manifest's must be the checkpoint's.

    Raises:
        CheckpointMismatch: it is of another training, or doesn't fit the manifest.
        CheckpointUnusable: a part of it can't be read.
    """
    require_same(checkpoint, training.identity)
    before = checkpoint.summary.job["spec"]["seed"]
    if as_seeded and before != training.job.spec.seed:
        raise CheckpointMismatch(
            f"{checkpoint.path} was made with seed {before}, and a serial run takes its episodes up again by their "
            f"seeds: set seed to {before}, or start in another run directory"
        )
    missing = training.missing_from(checkpoint)
    if missing:
        log.warning("%s has no %s in it: starting with a new one", checkpoint.path, ", ".join(missing))
    unwanted = training.unwanted_in(checkpoint)
    if unwanted:
        log.warning(
            "%s has %s in it: starting with a new one, as checkpoint.replay is false",
            checkpoint.path,
            ", ".join(unwanted),
        )
    try:
        training.set_state(checkpoint)
        training.saved(checkpoint)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckpointMismatch(
            f"{checkpoint.path} doesn't fit this manifest ({type(error).__name__}: {error}): use the manifest that "
            "it was made with, or start in another run directory"
        ) from error
