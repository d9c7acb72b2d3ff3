"""Ctrl-C and SIGTERM: once to stop at the next step and save, twice to leave at once."""

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Literal

from rltrain.api import names
from rltrain.runtime.processes import kill_descendants


class Interrupts:
    """Context manager that turns signals into `asked`.

    Attributes:
        asked: which of the two has come, or None.
        on_leaving: called before leaving at once; they must not wait for anything.
    """

    def __init__(self) -> None:
        self.asked: Literal["interrupted", "terminated"] | None = None
        self.on_leaving: list[Callable[[], object]] = []
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        self._previous = self.install()
        return self

    def install(self) -> dict[int, object]:
        """Put the handlers in place, again where something (Ray's start) has replaced them; returns the former ones."""
        return {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}

    def leave_to_python(self) -> None:
        """Of a command that has nothing to save: Ctrl-C raises KeyboardInterrupt, at once where it has come already."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self.asked is not None:
            raise KeyboardInterrupt

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None and number == signal.SIGINT:
            _say("interrupted again: leaving at once, nothing more is saved")
            kill_descendants()  # some of Ray's would live on for a while
            for clean in self.on_leaving:
                with contextlib.suppress(OSError):
                    clean()
            os._exit(names.EXIT_INTERRUPTED)
        again = " (once more to leave at once)" if number == signal.SIGINT else ""
        self.asked = "interrupted" if number == signal.SIGINT else "terminated"
        _say(f"{self.asked}: stopping as soon as everything is saved{again}")


def _say(words: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be there to read it
        os.write(2, f"{words}\n".encode())  # a signal may have come in the middle of another write
