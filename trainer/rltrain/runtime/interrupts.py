"""Ctrl-C and SIGTERM: once to stop at the next step and save, twice to leave at once."""

import os
import signal
import sys
from types import FrameType
from typing import Literal

from rltrain.api import names


class Interrupts:
    """Context manager that turns signals into `asked`.

    Attributes:
        asked: which of the two has come, or None.
    """

    def __init__(self) -> None:
        self.asked: Literal["interrupted", "terminated"] | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        self._previous = self.install()
        return self

    def install(self) -> dict[int, object]:
        """Put the handlers in place, again where something (Ray's start) has replaced them; returns the former ones."""
        return {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None and number == signal.SIGINT:
            # Children die with this process: Ray's are bound to their parent's life.
            sys.stderr.write("interrupted twice: leaving without saving\n")
            sys.stderr.flush()
            os._exit(names.EXIT_INTERRUPTED)
        self.asked = "interrupted" if number == signal.SIGINT else "terminated"
        if number == signal.SIGINT:
            sys.stderr.write("interrupted: saving a checkpoint (once more to leave at once)\n")
            sys.stderr.flush()
