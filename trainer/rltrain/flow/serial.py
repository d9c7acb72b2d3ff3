"""Serial back end: every actor in this process, one after the other, in the same order each time."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from inspect import isgenerator
from typing import Any

from rltrain.flow.actors import Actor, ActorFailed, ActorHost, ActorLost, CollectiveFailed, Future


class SerialFuture:
    """A call that runs when somebody asks for its result."""

    def __init__(self, actor: "SerialActor", function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.actor = actor
        self.function = function
        self.args = args
        self.generator: Generator[Any, Any, Any] | None = None
        self.request: Any = None
        self.done = False
        self.value: Any = None
        self.error: Exception | None = None

    def finish(self, value: Any = None, error: Exception | None = None) -> None:
        self.done, self.value, self.error = True, value, error
        self.generator = self.request = None

    def step(self, advance: Callable[[], Any]) -> None:
        """Run to the end or to the next request for an average."""
        try:
            result = advance()
            if self.generator is None and isgenerator(result):
                self.generator = result
                result = next(result)
            if self.generator is None:
                self.finish(result)
            else:
                self.request = result
        except StopIteration as stop:
            self.finish(stop.value)
        except Exception as error:
            self.finish(error=error)


class SerialActor:
    """An object in this process with a queue of calls."""

    def __init__(self, factory: Callable[[], Any], index: int) -> None:
        self.index = index
        self.host = ActorHost(factory)
        self.queue: deque[SerialFuture] = deque()
        self.group: list[SerialActor] = [self]
        self.alive = True

    def apply(self, function: Callable[..., Any], *args: Any) -> Future:
        future = SerialFuture(self, function, args)
        if self.alive:
            self.queue.append(future)
        return future

    def apply_split(self, function: Callable[..., Any], *args: Any) -> Future:
        return self.apply(function, *args)  # here a value is its own reference

    def control(self, function: Callable[..., Any], *args: Any) -> Future:
        future = SerialFuture(self, function, args)
        if self.alive:
            future.step(lambda: self.host.start(function, args))
        return future


class SerialBackend:
    """Runs calls when their results are asked for; a group's members advance from one average to the next in turn.

    Args:
        serial: see `Backend`; without it only a flow that has no actors is served as well as elsewhere.
    """

    parallel = False

    def __init__(self, serial: bool = True) -> None:
        self.serial = serial

    def create(self, factory: Callable[[], Any], *, role: str, index: int, slotless: bool = False) -> Actor:
        return SerialActor(factory, index)

    def here(self, factory: Callable[[], Any], *, index: int) -> Actor:
        return SerialActor(factory, index)

    def join(self, actors: Sequence[Actor]) -> None:
        """Make these the group over which their generators' yields are averaged, in this order."""
        members = [actor for actor in actors if isinstance(actor, SerialActor)]
        for actor in members:
            actor.group = members

    def wait(self, futures: Sequence[Future], timeout: float | None = None) -> list[Future]:
        for future in futures:
            self._run(_own(future))
            return [other for other in futures if _own(other).done or not _own(other).actor.alive]
        return []

    def result(self, future: Future) -> Any:
        own = _own(future)
        self._run(own)
        if not own.done:
            raise ActorLost(own.actor, f"actor {own.actor.index} is gone")
        if own.error is not None:
            raise ActorFailed(own.actor, f"actor {own.actor.index} failed: {own.error}") from own.error
        return own.value

    def share(self, value: Any) -> Any:
        return value

    def kill(self, actor: Actor) -> None:
        own = actor
        assert isinstance(own, SerialActor)
        own.alive = False
        own.queue.clear()

    def slots(self, role: str) -> int:
        return 1_000_000

    def _run(self, future: SerialFuture) -> None:
        while not future.done and future.actor.alive:
            self._advance(future.actor)

    def _advance(self, actor: SerialActor) -> None:
        """Take the actor's next call to its end or over one average."""
        self._to_request(actor)
        if not actor.queue or actor.queue[0].request is None:
            return
        for member in actor.group:
            while member.alive and member.queue and member.queue[0].request is None:
                self._to_request(member)
        missing = [member.index for member in actor.group if not member.queue]
        if missing:
            error = CollectiveFailed(f"members {missing} never joined the collective operation")
            actor.queue.popleft().finish(error=error)
            return
        calls = [member.queue[0] for member in actor.group]
        total = calls[0].request
        for call in calls[1:]:
            total = total + call.request
        mean = total / len(calls)
        for call in calls:
            generator = call.generator
            assert generator is not None
            call.request = None
            call.step(lambda generator=generator: generator.send(mean))  # type: ignore[misc]
            if call.done:
                call.actor.queue.popleft()

    def _to_request(self, actor: SerialActor) -> None:
        """Start the actor's next call, unless it already waits for an average."""
        if not actor.queue or actor.queue[0].request is not None:
            return
        call = actor.queue[0]
        call.step(lambda: actor.host.start(call.function, call.args))
        if call.done:
            actor.queue.popleft()


def _own(future: Future) -> SerialFuture:
    assert isinstance(future, SerialFuture)
    return future
