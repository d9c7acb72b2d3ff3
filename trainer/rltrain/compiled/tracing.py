"""Whether a function is being traced for the compiler."""

from collections.abc import Iterator
from contextlib import contextmanager

_traced = False


def is_traced() -> bool:
    """True where the code at hand is recorded rather than run: for operators that the compiler can't see into."""
    return _traced


@contextmanager
def traced() -> Iterator[None]:
    """Meanwhile what runs in this process is recorded."""
    global _traced
    _traced = True
    try:
        yield
    finally:
        _traced = False
