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


def alive(pid: int) -> bool:
    """Whether a process is there and not only waits for its parent to hear of its end."""
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def kill_tree(pid: int) -> None:
    """As when a machine is gone: all at once, nobody gets to clean up."""
    for each in tree(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
