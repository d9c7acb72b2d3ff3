"""How far the work is, as the API server's watches tell: pods made, pods running, jobs that are said to be well."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.operator.api import METADATA, Api
from bench.operator.contenders import NAMESPACE, Contender, path


@dataclass
class Moments:
    """When each of some things first was so, in seconds of the monotonic clock."""

    first: dict[str, float] = field(default_factory=dict)
    now: set[str] = field(default_factory=set)
    """Those that are so at present."""

    def set(self, name: str, holds: bool) -> None:
        if holds:
            self.first.setdefault(name, time.monotonic())
            self.now.add(name)
        else:
            self.now.discard(name)


class Observer:
    """Follows the pods and the contender's objects in the bench's namespace."""

    def __init__(self, api: Api, contender: Contender) -> None:
        self.made, self.running, self.well = Moments(), Moments(), Moments()
        self._contender = contender
        self._news = threading.Condition()
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        api.watch(pods, self._sink(self.made), accept=METADATA)
        api.watch(pods, self._sink(self.running), fields="status.phase=Running", accept=METADATA)
        api.watch(path(contender), self._job)

    def wait(self, holds: Callable[[], bool], seconds: float, tell: Callable[[], None] | None = None) -> bool:
        """Until it holds, at most so long; whether it does. `tell` is called every five seconds meanwhile."""
        end, next_word = time.monotonic() + seconds, time.monotonic() + 5
        with self._news:
            while not holds() and time.monotonic() < end:
                self._news.wait(0.25)
                if tell is not None and time.monotonic() >= next_word:
                    next_word = time.monotonic() + 5
                    tell()
            return holds()

    def _sink(self, moments: Moments) -> Callable[[str, dict[str, Any]], None]:
        def take(change: str, made: dict[str, Any]) -> None:
            with self._news:
                moments.set(made["metadata"]["name"], change != "DELETED")
                self._news.notify_all()

        return take

    def _job(self, change: str, made: dict[str, Any]) -> None:
        with self._news:
            self.well.set(made["metadata"]["name"], change != "DELETED" and self._contender.well(made))
            self._news.notify_all()
