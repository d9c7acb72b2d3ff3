"""Lazy iterator in the driver: nothing happens until it is pulled."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from rltrain.flow.actors import Actor, Future
from rltrain.flow.metrics import get_metrics
from rltrain.flow.signals import NOT_READY, PROGRESS, Signal

T = TypeVar("T")
U = TypeVar("U")

Wait = Callable[[Sequence[Future], float | None], Any]


class Stalled(RuntimeError):
    """Nothing in the flow is ready and nothing is awaited: it would never go on."""


@runtime_checkable
class Waiting(Protocol):
    """An operator that can say what must be done before it takes the item that it couldn't take."""

    def waits(self) -> Sequence[Future]: ...


def no_waits() -> Sequence[Future]:
    """Of a flow that depends on no actor."""
    return ()


def cannot_wait(futures: Sequence[Future], timeout: float | None) -> None:
    """Of a flow that has no back end."""
    raise Stalled("nothing in this flow can become ready")


class LocalIterator(Generic[T]):
    """A source and what is done to its items.

    Args:
        pull: one step that never spins: an item, NOT_READY or PROGRESS; StopIteration at the end.
        waits: what a consumer should wait for after NOT_READY.
        wait: blocks until one of some futures is done.
    """

    def __init__(
        self, pull: Callable[[], T | Signal], waits: Callable[[], Sequence[Future]] = no_waits, wait: Wait = cannot_wait
    ) -> None:
        self.pull = pull
        self.waits = waits
        self.wait = wait

    @classmethod
    def of(cls, items: Iterable[T | Signal]) -> "LocalIterator[T]":
        """From items at hand, signals among them."""
        iterator = iter(items)
        return cls(lambda: next(iterator))

    def for_each(self, function: Callable[[T], U | Signal]) -> "LocalIterator[U]":
        """Apply `function` to each item.

        It returns PROGRESS when it took the item but has nothing to hand out, and NOT_READY when it couldn't take
        it (a full queue): the item is then kept and offered again at the next pull. What it then waits for is what
        it says itself (see `Waiting`), not where items come from: more of them would change nothing.
        """
        kept: list[tuple[T, Actor | None]] = []

        def pull() -> U | Signal:
            metrics = get_metrics()
            if kept:
                item, metrics.current_actor = kept[0]
            else:
                pulled = self.pull()
                if isinstance(pulled, Signal):
                    return pulled
                item = pulled
            result = function(item)
            if result is NOT_READY:
                kept[:] = [(item, metrics.current_actor)]
            elif kept:
                kept.clear()
            return result

        def waits() -> Sequence[Future]:
            if not kept:
                return self.waits()
            return function.waits() if isinstance(function, Waiting) else ()

        return LocalIterator(pull, waits, self.wait)

    def only_while(self, condition: Callable[[], bool]) -> "LocalIterator[T]":
        """Not ready, and waiting for nothing, unless `condition` holds."""
        return LocalIterator(
            lambda: self.pull() if condition() else NOT_READY,
            lambda: self.waits() if condition() else (),
            self.wait,
        )

    def filter(self, predicate: Callable[[T], bool]) -> "LocalIterator[T]":
        """Only the items that `predicate` holds for."""
        return self.for_each(lambda item: item if predicate(item) else PROGRESS)

    def zip_with_source_actor(self) -> "LocalIterator[tuple[Actor, T]]":
        """Each item with the actor that it came from."""

        def pair(item: T) -> tuple[Actor, T]:
            actor = get_metrics().current_actor
            if actor is None:
                raise RuntimeError("zip_with_source_actor: these items don't come from an actor")
            return actor, item

        return self.for_each(pair)

    def tick(self, timeout: float | None = None) -> T | Signal:
        """One pull, and where nothing is ready one blocking wait of at most `timeout` seconds. Raises Stalled."""
        item = self.pull()
        if item is NOT_READY:
            futures = self.waits()
            if not futures:
                raise Stalled("no part of the flow is ready, and none is waiting for an actor")
            self.wait(futures, timeout)
        return item

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self.tick()
            except StopIteration:
                return
            if not isinstance(item, Signal):
                yield item
