"""Both back ends, and a team of small actors on them, for tests."""

import threading
import time
from collections.abc import Generator, Sequence
from typing import Any, Final

import pytest
import ray

from rltrain.flow import Actor, ActorFailed, Backend, Future, ShardFailure
from rltrain.flow.parallel import Shards
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend

BACKENDS: Final = ["serial", "ray"]


def backend_of(request: pytest.FixtureRequest) -> Backend:
    """The back end that a parametrised fixture names."""
    if request.param == "serial":
        return SerialBackend()
    teams: RayTeams = request.getfixturevalue("ray_teams")
    return teams


class Counter:
    """Counts on from ten times its index."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.count = 10 * index
        self.released = threading.Event()
        self.meeting: Any = None

    def next(self) -> int:
        self.count += 1
        return self.count

    def plus_own(self, agreed: int) -> int:
        return agreed + self.count

    def average_twice(self, item: int) -> Generator[float, float, tuple[float, float]]:
        first = yield float(self.count)
        second = yield first + self.index
        return first, second

    def average(self, value: float) -> float:
        """Over Ray: through an actor at which the members meet."""
        ray.get(self.meeting.put.remote(self.index, value))
        while (mean := ray.get(self.meeting.mean.remote(self.index))) is None:
            time.sleep(0.001)
        return float(mean)

    def meet(self, meeting: Any) -> None:
        self.meeting = meeting

    def release(self) -> str:
        self.released.set()
        return "released"

    def wait_for_release(self) -> str:
        assert self.released.wait(60)
        return "done"


class Meeting:
    """Takes one value of each member a round and answers with their mean."""

    def begin(self, size: int) -> None:
        self.size = size
        self.values: dict[int, list[float]] = {}
        self.asked: dict[int, int] = {}

    def put(self, index: int, value: float) -> None:
        self.values.setdefault(index, []).append(value)

    def mean(self, index: int) -> float | None:
        position = self.asked.get(index, 0)
        if len(self.values) < self.size or any(len(values) <= position for values in self.values.values()):
            return None
        self.asked[index] = position + 1
        return sum(values[position] for values in self.values.values()) / self.size


class RayTeams(RayBackend):
    """Counters over Ray begin anew for each team, but in the same processes: starting one is what takes time."""

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[int, Actor] = {}
        self._meeting: Any = ray.remote(Meeting).options(num_cpus=0).remote()

    def team(self, size: int) -> list[Actor]:
        self._counters = {index: actor for index, actor in self._counters.items() if actor in self.actors}
        for index in range(1, size + 1):
            if index not in self._counters:
                self._counters[index] = self.create(MakeCounter(index), role="shards", index=index)
        members = [self._counters[index] for index in range(1, size + 1)]
        for member in members:
            self.result(member.apply(Counter.__init__, member.index))
        ray.get(self._meeting.begin.remote(size))
        for member in members:
            self.result(member.apply(Counter.meet, self._meeting))
        return members


class Team(Shards):
    """Shards whose failures are recorded; a failed actor stays, a lost one goes."""

    def __init__(self, backend: Backend, size: int) -> None:
        self._backend = backend
        self.failures: list[ShardFailure] = []
        if isinstance(backend, RayTeams):
            self.members: list[Actor] = backend.team(size)
        else:
            assert isinstance(backend, SerialBackend)
            self.members = [
                backend.create(MakeCounter(index), role="shards", index=index) for index in range(1, size + 1)
            ]
            backend.join(self.members)

    @property
    def backend(self) -> Backend:
        return self._backend

    def refresh(self) -> None: ...

    def actors(self) -> Sequence[Actor]:
        return list(self.members)

    def pending(self) -> Sequence[Future]:
        return []

    def succeeded(self, actor: Actor) -> None: ...

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        self.failures += failures
        self.members = [
            member
            for member in self.members
            if not any(failure.actor is member and not isinstance(failure, ActorFailed) for failure in failures)
        ]


class MakeCounter:
    """Picklable factory."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self) -> Counter:
        return Counter(self.index)
