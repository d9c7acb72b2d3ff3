"""Ending process trees in tests."""

import contextlib
import os
import signal
from pathlib import Path


def tree(pid: int) -> list[int]:
    """A process and all that live below it."""
    with contextlib.suppress(OSError):
        below = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        return [pid, *(each for child in below for each in tree(child))]
    return []


def kill_tree(pid: int) -> None:
    """As when a machine is gone: all at once, nobody gets to clean up."""
    for each in tree(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
