"""Actors that are made, watched and made again: what rollout workers and ranks have in common."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rltrain.api.errors import CallbackFailed, InvalidInput, RltrainError, TooManyRestarts, TrainingFailed
from rltrain.flow import Actor, ActorLost, Backend, Future, ShardFailure, get_metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """When making an actor again is hopeless.

    Attributes:
        clean_calls: results in a row that make up for earlier failures; those with fewer between them come "in a row".
        failures: of its own code in a row after which the cause must lie in what it runs.
        losses: deaths of its process in a row after which it is hopeless; None for those that training can do without.
    """

    clean_calls: int = 20
    failures: int = 3
    losses: int | None = 10


PATIENCE: Final = Patience()


class Crew:
    """Actors of one role by index, from 1; a lost one is made again under its index.

    Args:
        backend: where they live.
        role: whose slots they take.
        wanted: how many.
        factory: makes what actor `index` holds, its `incarnation`-th; picklable.
        noun: what counters and messages call one of them.
        slotless: they take no slots, see `Backend.create`.
        patience: with those that fail.
    """

    def __init__(
        self,
        backend: Backend,
        role: str,
        wanted: int,
        factory: Callable[[int, int], Any],
        noun: str = "worker",
        slotless: bool = False,
        patience: Patience = PATIENCE,
    ) -> None:
        self.backend = backend
        self.role = role
        self.wanted = wanted
        self._noun = noun
        self._slotless = slotless
        self._patience = patience
        self._factory = factory
        self._made: defaultdict[int, int] = defaultdict(int)
        self._starting: dict[int, tuple[Actor, Future]] = {}
        self._failures: defaultdict[int, int] = defaultdict(int)
        self._losses: defaultdict[int, int] = defaultdict(int)
        self._good: defaultdict[int, int] = defaultdict(int)
        for index in range(1, wanted + 1):
            self.start(index)

    def resize(self, wanted: int) -> None:
        """Begin to make those that are new, and no longer make those beyond; whoever has the latter ends them."""
        before, self.wanted = self.wanted, wanted
        for index in range(before + 1, wanted + 1):
            self.start(index)
        for index in [index for index in self._starting if index > wanted]:
            self.backend.kill(self._starting.pop(index)[0])

    def start(self, index: int) -> None:
        """Begin to make actor `index`."""
        make = partial(self._factory, index, self._made[index])
        self._made[index] += 1
        actor = self.backend.create(make, role=self.role, index=index, slotless=self._slotless)
        self._starting[index] = (actor, actor.apply(_ready))

    def arrived(self) -> list[Actor]:
        """Actors that have become ready since the last call, by index."""
        if not self._starting:
            return []
        done = set(map(id, self.backend.wait([future for _, future in self._starting.values()], 0.0)))
        ready: list[Actor] = []
        for index, (actor, future) in sorted(self._starting.items()):
            if id(future) not in done:
                continue
            del self._starting[index]
            try:
                self.backend.result(future)
                ready.append(actor)
            except ShardFailure as failure:
                self.replace([failure])
        return ready

    def pending(self) -> Sequence[Future]:
        """One for each actor that is being made."""
        return [future for _, future in self._starting.values()]

    def succeeded(self, actor: Actor) -> None:
        """Its call brought a result; after enough of them it starts with a clean slate."""
        index = actor.index
        if index in self._failures or index in self._losses:
            self._good[index] += 1
            if self._good[index] >= self._patience.clean_calls:
                for count in (self._failures, self._losses, self._good):
                    count.pop(index, None)

    def replace(self, failures: Sequence[ShardFailure]) -> None:
        """Make these actors again.

        Raises:
            RltrainError: the user's input is at fault, or one has failed too often in a row.
        """
        for failure in failures:
            self.judge(failure)
            self.backend.kill(failure.actor)
            self.start(failure.actor.index)

    def judge(self, failure: ShardFailure) -> None:
        """Count a failure. Raises RltrainError when trying again is hopeless."""
        index, cause = failure.actor.index, failure.__cause__
        self._good[index] = 0
        if isinstance(failure, ActorLost):
            self._losses[index] += 1
            get_metrics().counters[f"num_{self._noun}s_lost"] += 1
            log.warning("%s %d is lost and made again: %s", self._noun, index, failure)
            times = self._losses[index]
            if times == self._patience.losses:
                raise TrainingFailed(
                    f"{self._noun} {index} died {times} times in a row: its process is killed (too little memory?) or "
                    f"crashes in native code. Last: {failure}"
                ) from cause
            return
        self._failures[index] += 1
        get_metrics().counters[f"num_{self._noun}_failures"] += 1
        if isinstance(cause, InvalidInput | TooManyRestarts | CallbackFailed):
            raise cause
        log.warning("%s %d failed and is made again: %s", self._noun, index, cause)
        if self._failures[index] >= self._patience.failures:
            if isinstance(cause, RltrainError):
                raise cause
            raise TrainingFailed(
                f"{self._noun} {index} failed {self._failures[index]} times in a row: {cause}"
            ) from cause

    def dismiss(self, actors: Sequence[Actor]) -> None:
        """End these and whatever is being made."""
        for actor in [*actors, *(actor for actor, _ in self._starting.values())]:
            self.backend.kill(actor)
        self._starting.clear()


def heard(
    backend: Backend, futures: Sequence[Future], seconds: float, monotonic: Callable[[], float]
) -> Iterator[tuple[Actor, Any]]:
    """What actors answer, or the ShardFailure that came instead, of those who answer in time, as it comes."""
    left, deadline = list(futures), monotonic() + seconds
    while left and (remaining := deadline - monotonic()) > 0:
        for future in backend.wait(left, remaining):
            left.remove(future)
            try:
                yield future.actor, backend.result(future)
            except ShardFailure as failure:
                yield future.actor, failure


def _ready(target: Any) -> None:
    """Answered once the object has been made."""
