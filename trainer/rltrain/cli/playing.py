"""How far an evaluation is: live on a terminal, a line every ten seconds elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

PLAIN_SECONDS: Final = 10.0
_LIVE_SECONDS: Final = 0.1

Watch = Callable[[int, int], None]
"""Told how many episodes are finished, and how many steps were taken."""


@contextmanager
def playing(episodes: int) -> Iterator[Watch]:
    """Show on stderr what the yielded function is told."""
    if not sys.stderr.isatty():
        yield Seldom(PLAIN_SECONDS, lambda done, steps: _print(describe(done, episodes, steps), sys.stderr))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(describe(0, episodes, 0), total=episodes)
        yield Seldom(
            _LIVE_SECONDS,
            lambda done, steps: progress.update(task, completed=done, description=describe(done, episodes, steps)),
        )


class Seldom:
    """Passes on what it is told, but only after some time has gone since the last.

    Args:
        seconds: least time between two.
        tell: what is called.
        clock: seconds from any start.
    """

    def __init__(self, seconds: float, tell: Watch, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._tell, self._clock = seconds, tell, clock
        self._last = clock()

    def __call__(self, done: int, steps: int) -> None:
        now = self._clock()
        if now - self._last >= self._seconds:
            self._last = now
            self._tell(done, steps)


def describe(done: int, episodes: int, steps: int) -> str:
    """The mean of those finished isn't told: the short ones come first."""
    return f"{done} of {episodes} episodes, {steps:,} steps"


def _print(line: str, stream: TextIO) -> None:
    print(line, file=stream, flush=True)
