"""Stand-ins for the jobs' drivers, which tell the API server how training goes."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from bench.operator.api import Api
from bench.operator.contenders import Contender, path
from rltrain.api import names

WRITERS: Final = 4


class Drivers:
    """One report of progress for each job in every so many seconds, evenly spread, while the block lasts.

    Attributes:
        reports: how many were sent after the first words.
    """

    def __init__(self, api: Api, contender: Contender, jobs: Sequence[str], every_s: float) -> None:
        self.reports = 0
        self._api = api
        self._contender = contender
        self._jobs = jobs
        self._every_s = every_s
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def first_words(self) -> None:
        """Each driver says that it trains."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda job: self._report(job, 0), self._jobs))

    def go_on(self) -> None:
        """From now on all of them have news."""
        for index in range(WRITERS):
            thread = threading.Thread(target=self._go_on, args=(self._jobs[index::WRITERS],), daemon=True)
            thread.start()
            self._threads.append(thread)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, jobs: Sequence[str]) -> None:
        if not jobs:
            return
        due, turn = time.monotonic(), 0
        while True:
            turn += 1
            for job in jobs:
                due += self._every_s / len(jobs)
                if self._over.wait(max(due - time.monotonic(), 0)):
                    return
                self._report(job, 1000 * turn)
                self.reports += 1

    def _report(self, job: str, steps: int) -> None:
        progress: dict[str, Any] = {
            "phase": "Training",
            "attempt": 1,
            "envSteps": steps,
            "trainedSteps": 4 * steps,
            "episodes": steps // 100,
            "episodeReturnMean": 100.0 + steps % 97,
            "stepsPerSecond": 33.3,
            "workersHealthy": 4,
            "workersWanted": 4,
            "updatedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        where = f"{path(self._contender, job)}/status?fieldManager={names.DRIVER_FIELD_MANAGER}"
        self._api.merge(where, {"status": {"progress": progress}})
