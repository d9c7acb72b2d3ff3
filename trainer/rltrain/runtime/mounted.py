"""The job's manifest as it is mounted, which is written anew when somebody edits the job while it runs."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rltrain.api.errors import InvalidInput
from rltrain.api.job import RLTrainingJob
from rltrain.api.load import load_job

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0


class MountedManifest:
    """Read again whenever its file has changed, which is looked at every second at most.

    Args:
        path: the file; the kubelet puts a new one in its place.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._looked_at = monotonic()
        self._seen = self._identity()

    def changed(self) -> RLTrainingJob | None:
        """The job as the file says now, where it has changed since the last call; None where it can't be read."""
        if self._monotonic() - self._looked_at < LOOK_SECONDS:
            return None
        self._looked_at = self._monotonic()
        found = self._identity()
        if found is None or found == self._seen:
            return None
        self._seen = found
        try:
            return load_job(self._path)
        except InvalidInput as error:
            log.warning("the edited manifest is no good, training goes on by the former one: %s", error)
            return None

    def _identity(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
