"""Sharded flow: the same steps on each of several actors, gathered into the driver."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload

from rltrain.flow.actors import Actor, Backend, Future, ShardFailure, chain
from rltrain.flow.local import LocalIterator
from rltrain.flow.metrics import get_metrics
from rltrain.flow.signals import NOT_READY, PROGRESS, Signal

T = TypeVar("T")
U = TypeVar("U")

Stage = Callable[[Any, Any], Any]
"""`stage(target, item)`, run where the actor lives; it must be picklable."""

Hasten = Callable[[Sequence[Any], int], Callable[[Any], None] | None]
"""From the items that have come, and how many shards there are, to what the others do beside their work, once."""


@dataclass(frozen=True)
class Call:
    """What an actor is asked for: `function(target, *args)`.

    Attributes:
        split: it returns (small, large), of which large stays where it is (see `Actor.apply_split`).
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    split: bool = False


class Shards(Protocol):
    """A changing set of actors; whoever owns it replaces the lost ones."""

    @property
    def backend(self) -> Backend:
        """Where they live."""

    def refresh(self) -> None:
        """Take in actors that have become ready since; never blocks for long."""

    def actors(self) -> Sequence[Actor]:
        """The healthy ones, by index."""

    def pending(self) -> Sequence[Future]:
        """One for each actor that is being made."""

    def succeeded(self, actor: Actor) -> None:
        """A call brought its result."""

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        """These didn't; replace their actors, or raise when it is hopeless."""


class ParallelIterator(Generic[T]):
    """One item a pull from each shard.

    Args:
        shards: the actors.
        source: what a shard is asked for at each pull.
        stages: what is done to the item there, in order.
    """

    def __init__(
        self,
        shards: Shards,
        source: Callable[[Actor], Call],
        stages: tuple[Stage, ...] = (),
        agreement: "Agreement | None" = None,
    ) -> None:
        self._shards = shards
        self._source = source
        self._stages = stages
        self._agreement = agreement

    @overload
    def for_each(self, stage: Callable[[Any, T], Generator[Any, Any, U]]) -> "ParallelIterator[U]": ...
    @overload
    def for_each(self, stage: Callable[[Any, T], U]) -> "ParallelIterator[U]": ...
    def for_each(self, stage: Callable[[Any, T], Any]) -> "ParallelIterator[Any]":
        """Apply `stage(target, item)` on each shard; a generator's yields are averaged over the group."""
        return ParallelIterator(self._shards, self._source, (*self._stages, stage), self._agreement)

    def agree(self, combine: Callable[[Sequence[T]], U], *, hasten: "Hasten | None" = None) -> "ParallelIterator[U]":
        """Bring every shard's item here, combine them, and give all shards the outcome, before any goes on.

        A shard that fails before this point stops them all, so that none waits for it in a collective operation.
        """
        if self._agreement is not None:
            raise ValueError("a sharded flow agrees once")
        return ParallelIterator(self._shards, self._source, (), Agreement(self._stages, combine, hasten))

    def batch_across_shards(self) -> LocalIterator[list[T]]:
        """Lists of one item from each shard, by index. When one fails its round is void for all."""
        backend = self._shards.backend

        def round_() -> list[T] | None:
            actors = self._shards.actors()
            calls = [self._source(actor) for actor in actors]
            if self._agreement is not None:
                before = self._agreement.stages
                hasten = self._agreement.hasten
                items = self._together([_submit(a, c, before) for a, c in zip(actors, calls, strict=True)], hasten)
                if items is None:
                    return None
                outcome = backend.share(self._agreement.combine(items))
                calls = [Call(_given, (outcome,)) for _ in actors]
            return self._together([_submit(a, c, self._stages) for a, c in zip(actors, calls, strict=True)])

        def pull() -> list[T] | Signal:
            self._shards.refresh()
            if not self._shards.actors():
                return NOT_READY
            result = round_()
            return PROGRESS if result is None else result

        return LocalIterator(pull, self._shards.pending, backend.wait)

    def gather_sync(self) -> LocalIterator[T]:
        """One item after the other in the order of the shards, a new round when all have given theirs."""
        ready: deque[tuple[Actor, T]] = deque()

        def pull() -> T | Signal:
            if not ready:
                items = self._round()
                if isinstance(items, Signal):
                    return items
                ready.extend(items)
            actor, item = ready.popleft()
            get_metrics().current_actor = actor
            return item

        return LocalIterator(pull, self._shards.pending, self._shards.backend.wait)

    def gather_rounds(self) -> LocalIterator[list[T]]:
        """Lists of one item from each healthy shard; a failing one loses its item, the others keep theirs."""

        def pull() -> list[T] | Signal:
            items = self._round()
            return items if isinstance(items, Signal) else [item for _, item in items]

        return LocalIterator(pull, self._shards.pending, self._shards.backend.wait)

    def gather_async(self, num_async: int = 1, name: str = "gather") -> LocalIterator[T]:
        """Items as they come, with `num_async` calls in flight on each shard.

        Where calls don't run meanwhile none is in flight: the shards take turns, and whose turn it is stands in the
        metrics context under `name`, so that a resumed run goes on with the next.
        """
        if num_async < 1:
            raise ValueError(f"num_async must be at least 1, not {num_async}")
        backend = self._shards.backend
        if not backend.parallel:
            return self._take_turns(f"{name}/turn")
        flying: list[Future] = []
        ready: deque[Actor] = deque()  # once for each item that is known to be there: asking costs more than an item

        def refill() -> None:
            self._shards.refresh()
            for actor in self._shards.actors():
                for _ in range(num_async - sum(future.actor is actor for future in flying)):
                    flying.append(_submit(actor, self._source(actor), self._stages))

        def pull() -> T | Signal:
            refill()
            if not ready and flying:
                ready.extend(future.actor for future in backend.wait(flying, 0.0))
            if not ready:
                return NOT_READY
            # An actor works in order, but word of its second item may be here before that of its first.
            actor = ready.popleft()
            future = next(each for each in flying if each.actor is actor)
            flying.remove(future)
            try:
                item: T = backend.result(future)
            except ShardFailure as failure:
                # The rest of what it owed will fail the same way; one report is enough.
                flying[:] = [other for other in flying if other.actor is not future.actor]
                ready.clear()
                self._shards.failed([failure])
                return PROGRESS
            self._shards.succeeded(future.actor)
            get_metrics().current_actor = future.actor
            return item

        return LocalIterator(pull, lambda: [*flying, *self._shards.pending()], backend.wait)

    def _take_turns(self, turn: str) -> LocalIterator[T]:
        def pull() -> T | Signal:
            self._shards.refresh()
            actors = self._shards.actors()
            if not actors:
                return NOT_READY
            metrics = get_metrics()
            actor = actors[metrics.counters[turn] % len(actors)]
            metrics.counters[turn] += 1
            try:
                item: T = self._shards.backend.result(_submit(actor, self._source(actor), self._stages))
            except ShardFailure as failure:
                self._shards.failed([failure])
                return PROGRESS
            self._shards.succeeded(actor)
            metrics.current_actor = actor
            return item

        return LocalIterator(pull, self._shards.pending, self._shards.backend.wait)

    def _round(self) -> list[tuple[Actor, T]] | Signal:
        self._shards.refresh()
        actors = self._shards.actors()
        if not actors:
            return NOT_READY
        futures = [_submit(actor, self._source(actor), self._stages) for actor in actors]
        items: list[tuple[Actor, T]] = []
        failures: list[ShardFailure] = []
        for future in futures:
            try:
                items.append((future.actor, self._shards.backend.result(future)))
                self._shards.succeeded(future.actor)
            except ShardFailure as failure:
                failures.append(failure)
        if failures:
            self._shards.failed(failures)
        return items or PROGRESS

    def _together(self, futures: Sequence[Future], hasten: "Hasten | None" = None) -> list[Any] | None:
        """All results, or None as soon as one has failed: the others may never come."""
        backend = self._shards.backend
        results: dict[int, Any] = {}
        waiting = list(futures)
        while waiting:
            failures: list[ShardFailure] = []
            for future in backend.wait(waiting):
                waiting.remove(future)
                try:
                    results[futures.index(future)] = backend.result(future)
                except ShardFailure as failure:
                    failures.append(failure)
            if failures:
                self._shards.failed(failures)
                return None
            # Where calls run one after the other nobody lags behind.
            if hasten and backend.parallel and (call := hasten(list(results.values()), len(futures))):
                hasten = None
                for future in waiting:
                    future.actor.control(call)
        for future in futures:
            self._shards.succeeded(future.actor)
        return [results[position] for position in range(len(futures))]


@dataclass(frozen=True)
class Agreement:
    """Stages before an agreement, how it is reached, and what those are told that it waits for."""

    stages: tuple[Stage, ...]
    combine: Callable[[Sequence[Any]], Any]
    hasten: "Hasten | None" = None


def _submit(actor: Actor, call: Call, stages: tuple[Stage, ...]) -> Future:
    if not stages:
        return (actor.apply_split if call.split else actor.apply)(call.function, *call.args)
    if call.split:
        raise ValueError("a split result has left its shard: nothing more can be done to it there")
    # Arguments stay at the top level of the call: only there does a shared reference become its value.
    return actor.apply(chain, stages, call.function, *call.args)


def _given(target: Any, outcome: Any) -> Any:
    return outcome
