"""Whole trees of processes (Linux): Ray's processes have children of their own, which must not outlive them."""

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies, so that `kill_descendants` finds them."""
    import ctypes  # a command that is interrupted while it loads should hear of it before this is imported

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[int]:
    """Process ids of all living processes below this one."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                # "pid (name) state parent ...": the name may hold spaces and brackets.
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    children[int(parent)].append(int(folder.name))
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children[queue.pop()]
        found += below
        queue += below
    return found


def kill_descendants(spared: Collection[int] = ()) -> None:
    """SIGKILL everything below this process, and what it starts meanwhile, and reap what this process has adopted."""
    while alive := set(descendants()) - set(spared):
        kill(alive)
        reap()
    reap()


def kill(pids: Iterable[int]) -> None:
    """SIGKILL processes, some of which may be gone already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def reap() -> None:
    """Collect the exit states of dead children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
