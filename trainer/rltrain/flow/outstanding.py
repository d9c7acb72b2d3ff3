"""Calls that nobody waits for: their number is bounded, and their failures are seen."""

from collections.abc import Callable, Sequence
from typing import Final

from rltrain.flow.actors import Actor, Backend, Future, ShardFailure, ValueLost

_REAPED: Final = 8
"""Calls on their way from which it is worth asking which are done."""


class Outstanding:
    """Calls whose results don't matter.

    Args:
        backend: of their actors.
        limit: how many may be on their way; None where something else bounds them.
        failed: told of those that failed; of a lost actor once, for all that it owed fails with it.
    """

    def __init__(self, backend: Backend, limit: int | None, failed: Callable[[Sequence[ShardFailure]], None]) -> None:
        self._backend = backend
        self._limit = limit
        self._failed = failed
        self.pending: list[Future] = []

    def add(self, future: Future) -> None:
        """Look after one more."""
        self.pending.append(future)
        if len(self.pending) >= _REAPED or not self._backend.parallel:
            self.reap()

    @property
    def full(self) -> bool:
        """Whether there are as many as may be; what has been done meanwhile doesn't count."""
        if self._limit is None or len(self.pending) < self._limit:
            return False
        self.reap()
        return len(self.pending) >= self._limit

    def reap(self) -> None:
        """Take note of those that are done."""
        if not self.pending:
            return
        failures: list[ShardFailure] = []
        lost: list[Actor] = []
        for future in self._backend.wait(self.pending, 0.0):
            self.pending.remove(future)
            try:
                self._backend.result(future)
            except ShardFailure as failure:
                if isinstance(failure, ValueLost) or failure.actor not in lost:
                    failures.append(failure)
                if not isinstance(failure, ValueLost):
                    lost.append(failure.actor)
        if failures:
            self.pending = [future for future in self.pending if future.actor not in lost]
            self._failed(failures)
