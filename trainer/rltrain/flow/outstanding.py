"""Calls that nobody waits for: their number is bounded, and their failures are seen."""

from collections.abc import Callable, Sequence

from rltrain.flow.actors import Backend, Future, ShardFailure


class Outstanding:
    """Calls whose results don't matter.

    Args:
        backend: of their actors.
        limit: how many may be on their way.
        failed: told of those that failed, once for each actor.
    """

    def __init__(self, backend: Backend, limit: int, failed: Callable[[Sequence[ShardFailure]], None]) -> None:
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
        return len(self.pending) >= self._limit

    def reap(self) -> None:
        """Take note of those that are done."""
        if not self.pending:
            return
        failures: list[ShardFailure] = []
        for future in self._backend.wait(self.pending, 0.0):
            self.pending.remove(future)
            try:
                self._backend.result(future)
            except ShardFailure as failure:
                if all(failure.actor is not other.actor for other in failures):
                    failures.append(failure)
        if failures:
            lost = [failure.actor for failure in failures]
            self.pending = [future for future in self.pending if future.actor not in lost]
            self._failed(failures)
