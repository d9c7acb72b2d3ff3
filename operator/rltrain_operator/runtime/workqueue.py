"""A queue of keys: each at most once, each worked on by one worker at a time, failures ever later."""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_SECONDS = 0.5
LONGEST_SECONDS = 60.0


@dataclass
class WorkQueue(Generic[K]):
    """Keys that are due now or later.

    A key added while it is worked on is due again afterwards: what changed meanwhile isn't missed.

    Attributes:
        waited: told of each key that is handed out, how many seconds it was due.
    """

    waited: Callable[[float], None] = lambda _: None
    _due: dict[K, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, K]] = field(default_factory=list)
    _active: set[K] = field(default_factory=set)
    _failures: dict[K, int] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _first: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One worker waits for what comes, the others for their turn: not all of them wake for each key."""
    _count: int = 0
    _drained: bool = False

    def add(self, key: K, after: float = 0.0) -> None:
        """Make a key due in ``after`` seconds, or earlier if it is so already."""
        due = asyncio.get_running_loop().time() + after
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, key))
            self._wake.set()

    async def get(self) -> K:
        """The next key that is due and that nobody works on; pass it to ``done`` afterwards."""
        async with self._first:
            while True:
                self._wake.clear()
                key, later = self._take()
                if key is not None:
                    return key
                with suppress(TimeoutError):
                    # No wait_for, which makes a task: kopf cancels all tasks that were made after its own start.
                    async with asyncio.timeout_at(later):
                        await self._wake.wait()

    def _take(self) -> tuple[K | None, float | None]:
        """A key to work on, or when there may be one; None if only others can tell."""
        now = asyncio.get_running_loop().time()
        busy = []
        taken = None
        while taken is None and self._heap and self._heap[0][0] <= now and not self._drained:
            due, count, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue
            if key in self._active:
                busy.append((due, count, key))
                continue
            del self._due[key]
            self._active.add(key)
            self._idle.clear()
            self.waited(now - due)
            taken = key
        later = self._heap[0][0] if self._heap and not self._drained else None
        for entry in busy:
            heapq.heappush(self._heap, entry)
        return taken, later

    def done(self, key: K, *, failed: bool = False) -> None:
        """The work on a key is over; a failed one is due again after a while that doubles each time."""
        self._active.discard(key)
        if failed:
            times = self._failures[key] = self._failures.get(key, 0) + 1
            self.add(key, min(BASE_SECONDS * 2 ** (times - 1), LONGEST_SECONDS))
        else:
            self._failures.pop(key, None)
        if not self._active:
            self._idle.set()
        self._wake.set()

    async def drain(self) -> None:
        """Hand nothing out any more; returns once nothing is worked on."""
        self._drained = True
        if self._active:
            await self._idle.wait()

    def depth(self) -> int:
        """Keys that are due and wait."""
        return len(self._waiting())

    def age(self) -> float:
        """Seconds that the longest-waiting due key has waited."""
        now = asyncio.get_running_loop().time()
        return max((now - due for due in self._waiting()), default=0.0)

    def _waiting(self) -> list[float]:
        now = asyncio.get_running_loop().time()
        return [due for key, due in self._due.items() if due <= now and key not in self._active]

    def __len__(self) -> int:
        return len(self._due) + len(self._active)
