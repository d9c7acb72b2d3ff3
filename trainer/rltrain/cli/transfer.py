"""How much has been copied: live on a terminal, one line elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def transfer(what: str) -> Iterator[Callable[[int], None]]:
    """Show the bytes that the yielded function is told of, on stderr."""
    if sys.stderr.isatty():
        with _live(what) as advance:
            yield advance
        return
    total = 0

    def count(size: int) -> None:
        nonlocal total
        total += size

    yield count
    print(f"{what}: {total / 1e6:.1f} MB", file=sys.stderr)


@contextmanager
def _live(what: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda size: progress.advance(task, size)
