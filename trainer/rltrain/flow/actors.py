"""Actors: objects that live elsewhere and do one thing at a time. Two back ends, serial and Ray, behind one face."""

from collections.abc import Callable, Generator, Sequence
from inspect import isgenerator
from typing import Any, Protocol

from rltrain import user_code
from rltrain.api.errors import TrainingFailed


class ShardFailure(Exception):
    """A call to an actor that brought no result."""

    def __init__(self, actor: "Actor", message: str) -> None:
        super().__init__(message)
        self.actor = actor


class ActorLost(ShardFailure):
    """The actor, its process or its machine is gone."""


class ActorFailed(ShardFailure):
    """The actor's code raised; `__cause__` is what it raised, the actor itself may go on."""


class ValueLost(ShardFailure):
    """A value that the call was given is gone, with the machine that held it; the actor itself is well."""


class CollectiveFailed(TrainingFailed):
    """A collective operation broke off, as a rule because another member of the group is gone."""


class Actor(Protocol):
    """Handle of an object somewhere."""

    @property
    def index(self) -> int:
        """Number within its role, from 1; a replacement has the same."""

    def apply(self, function: Callable[..., Any], *args: Any) -> "Future":
        """Queue `function(target, *args)`. A generator's yields are averaged over the actor's group."""

    def apply_split(self, function: Callable[..., Any], *args: Any) -> "Future":
        """The same for a function that returns (small, large): the result is small, and a reference to large.

        What is large stays where it was made until somebody needs it: the reference stands for it as an argument.
        """

    def control(self, function: Callable[..., Any], *args: Any) -> "Future":
        """Run `function(target, *args)` beside whatever the actor is busy with."""


class Future(Protocol):
    """A result that an actor owes."""

    @property
    def actor(self) -> Actor:
        """Who owes it."""


class Backend(Protocol):
    """Makes actors and waits for them."""

    @property
    def serial(self) -> bool:
        """Whether everything must be the same each time: the clock counts steps, environments can be taken up again."""

    @property
    def parallel(self) -> bool:
        """Whether calls run while the driver does something else, so that it's of use to be ahead of its needs."""

    def create(self, factory: Callable[[], Any], *, role: str, index: int, slotless: bool = False) -> Actor:
        """A new actor around `factory()`, made where a slot of `role` is free; doesn't wait for it.

        With `slotless` it takes no slot: a machine of the role holds any number of such actors.
        """

    def here(self, factory: Callable[[], Any], *, index: int) -> Actor:
        """A new actor in the driver's own process, which ends with it and is never lost."""

    def wait(self, futures: Sequence[Future], timeout: float | None = None) -> list[Future]:
        """Those that have a result or failure, at least one unless `timeout` seconds pass first."""

    def result(self, future: Future) -> Any:
        """The result, waited for. Raises ActorLost or ActorFailed."""

    def share(self, value: Any) -> Any:
        """A reference that stands for `value` as an argument of many calls."""

    def kill(self, actor: Actor) -> None:
        """End the actor now, whatever it is doing."""

    def slots(self, role: str) -> int:
        """Actors of `role` that the machines which are there can hold."""


class ActorHost:
    """Holds an actor's object where it lives; the same for both back ends.

    A failing constructor is kept and raised by every call, so that its cause reaches the driver and no call hangs.
    """

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._target: Any = None
        self._failure: Exception | None = None
        user_code.extend_path()  # what it is asked to do may be written there
        try:
            self._target = factory()
        except Exception as error:
            self._failure = error

    def start(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """`function(target, *args)`; a generator is returned as it is."""
        if self._failure is not None:
            raise self._failure
        return function(self._target, *args)


def drive(generator: Generator[Any, Any, Any], average: Callable[[Any], Any]) -> Any:
    """Run a generator to its end, answering each yielded array with its average over the group."""
    try:
        request = next(generator)
        while True:
            request = generator.send(average(request))
    except StopIteration as stop:
        return stop.value


def chain(target: Any, stages: Sequence[Callable[[Any, Any], Any]], function: Callable[..., Any], *args: Any) -> Any:
    """A generator: `function(target, *args)`, then each stage with (target, item); generators among them are joined."""
    item = function(target, *args)
    if isgenerator(item):
        item = yield from item
    for stage in stages:
        item = stage(target, item)
        if isgenerator(item):
            item = yield from item
    return item
