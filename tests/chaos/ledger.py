"""What the jobs have saved, and whether a later start went on from it."""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from e2e.kube import Kube, Object
from testbed.shell import TestbedError

LOOK_SECONDS = 2.0


@dataclass
class Ledger:
    """The newest checkpoint that each job has told of, and each start of a driver that went on from an older one.

    Attributes:
        starts: of drivers that went on from a checkpoint, as job and attempt.
        fell_back: those that shouldn't have, in words.
    """

    starts: set[tuple[str, int]] = field(default_factory=set)
    fell_back: list[str] = field(default_factory=list)
    _saved: dict[tuple[str, int], int] = field(default_factory=dict)
    """Env steps in the newest checkpoint, as job and the attempt that made it."""

    def see(self, jobs: Iterable[Object]) -> None:
        """Take in jobs as they are now."""
        for job in jobs:
            name, status = job["metadata"]["name"], job.get("status") or {}
            progress = status.get("progress") or {}
            attempt, resumed = int(progress.get("attempt") or 0), progress.get("resumedFromSteps")
            if resumed is not None and (name, attempt) not in self.starts:
                self.starts.add((name, attempt))
                known = max(
                    (steps for (of, by), steps in self._saved.items() if of == name and by < attempt), default=0
                )
                if resumed < known:
                    self.fell_back.append(f"{name}'s attempt {attempt} went on from {resumed} of {known} saved steps")
            if (saved := (status.get("checkpoint") or {}).get("envSteps")) is not None:
                mark = name, attempt
                self._saved[mark] = max(int(saved), self._saved.get(mark, 0))


@contextmanager
def keeping(kube: Kube) -> Iterator[Ledger]:
    """A ledger of the namespace's jobs, looked at every few seconds while the API server is there."""
    ledger, over = Ledger(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            with suppress(AssertionError, TestbedError, ValueError):
                ledger.see(json.loads(kube.kubectl("get", "rltj", "-o", "json"))["items"])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield ledger
    finally:
        over.set()
        thread.join()
