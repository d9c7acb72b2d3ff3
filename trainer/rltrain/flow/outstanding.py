"""Calls that nobody waits for: their number is bounded, and their failures are seen."""

from collections.abc import Callable, Sequence

from rltrain.flow.actors import Actor, Backend, Future, ShardFailure, ValueLost


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
        self.reap()

    @property
    def full(self) -> bool:
        """Whether there are as many as may be; what has been done meanwhile doesn't count."""
        self.reap()
        return self._limit is not None and len(self.pending) >= self._limit

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
