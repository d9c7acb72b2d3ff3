"""What a command prints while it works: nobody may be reading it any more, and others print in between."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import typer


class Lasting:
    """A stream that goes on without output when it is closed or full: work isn't lost because nobody reads of it.

    Attributes:
        fresh: whether what comes next begins a line.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.fresh = True

    def write(self, text: str) -> int:
        """As any stream's."""
        if text:
            self.fresh = text.endswith("\n")
        self._despite_errors(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """As any stream's."""
        self._despite_errors(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _despite_errors(self, do: Any) -> None:
        try:
            do()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())  # what is buffered has to go somewhere as well
                os.close(null)


@contextmanager
def lasting_output() -> Iterator[Lasting]:
    """Standard output and error that last, whatever becomes of them; yields the former."""
    for descriptor in (1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # the lowest free one, which otherwise the next file would be
    before = sys.stdout, sys.stderr
    out, err = (Lasting(stream or open(os.devnull, "w")) for stream in before)  # noqa: PTH123, SIM115 - for good
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def last_line(out: Lasting, text: str) -> None:
    """Print a line of its own, whatever an environment has printed before."""
    typer.echo(text if out.fresh else f"\n{text}")
