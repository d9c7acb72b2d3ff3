"""Ray back end: each actor is a process on a machine of its role."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isgenerator
from typing import Any, Final, cast

import ray
import ray.exceptions

from rltrain.flow.actors import Actor, ActorFailed, ActorHost, ActorLost, Future, ValueLost, drive
from rltrain.flow.threads import Changes, ThreadActor, ThreadFuture

SLOT: Final = "slot"
"""Resource of which a machine has one for each actor that it can hold."""
ROLE_LABEL: Final = "role"
INDEX_LABEL: Final = "index"
"""Of a machine, counted from 0: actor i of its role takes the slot of machine i - 1, and leaves with it."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread may keep others of the driver's process waiting."""
ANY: Final = "any"
"""Role of a machine that takes actors of every role, and index of one that takes every actor of its role."""

_VALUE_LOST: Final = (
    ray.exceptions.ObjectLostError,
    ray.exceptions.ObjectFetchTimedOutError,
    ray.exceptions.OwnerDiedError,
)


class _Host(ActorHost):
    """In the actor's process. Control calls have a thread of their own, for when a collective operation hangs."""

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        result = self.start(function, args)
        return drive(result, self._target.average) if isgenerator(result) else result

    @ray.method(concurrency_group="control")
    def control(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.start(function, args)


# Ray's annotations know neither concurrency groups nor, with them, the class that comes out.
_RemoteHost: Any = cast(Any, ray.remote)(concurrency_groups={"control": 1}, max_restarts=0)(_Host)


class RayActor:
    """Handle of an actor in the Ray cluster."""

    def __init__(self, handle: Any, role: str, index: int) -> None:
        self.handle = handle
        self.role = role
        self.index = index

    def apply(self, function: Callable[..., Any], *args: Any) -> Future:
        return RayFuture(self.handle.apply.remote(function, *args), self)

    def apply_split(self, function: Callable[..., Any], *args: Any) -> Future:
        small, large = self.handle.apply.options(num_returns=2).remote(function, *args)
        return RayFuture(small, self, large)

    def control(self, function: Callable[..., Any], *args: Any) -> Future:
        return RayFuture(self.handle.control.remote(function, *args), self)


class RayFuture:
    """A result somewhere in the cluster.

    Attributes:
        large: reference to the part of a split result that stays where it is.
        watched, done: whether it tells when it has come, and whether it has; of those that are waited for along
            with a thread's.
    """

    def __init__(self, reference: Any, actor: Actor, large: Any = None) -> None:
        self.reference = reference
        self.actor = actor
        self.large = large
        self.watched = False
        self.done = False

    def finish(self) -> None:
        self.done = True


class RayBackend:
    """Actors by role, one to a slot, and threads of this process.

    Args:
        gpus: GPUs that each actor gets, by role; only a role with GPUs in its machines has any.

    Attributes:
        actors: those that haven't been killed; they end with the session.
    """

    serial = False
    parallel = True

    def __init__(self, gpus: "Mapping[str, float] | float" = 0) -> None:
        self._gpus = gpus
        self._changes = Changes()
        self.actors: list[RayActor] = []

    def create(self, factory: Callable[[], Any], *, role: str, index: int, slotless: bool = False) -> Actor:
        gpus = self._gpus.get(role, 0) if isinstance(self._gpus, Mapping) else self._gpus
        labels = {ROLE_LABEL: f"in({role},{ANY})"}
        if not slotless:
            labels[INDEX_LABEL] = f"in({index - 1},{ANY})"
        handle = _RemoteHost.options(
            num_cpus=0,
            num_gpus=gpus,
            resources={} if slotless else {SLOT: 1},
            scheduling_strategy="SPREAD" if slotless else "DEFAULT",
            label_selector=labels,
        ).remote(factory)
        actor = RayActor(handle, role, index)
        self.actors.append(actor)
        return actor

    def here(self, factory: Callable[[], Any], *, index: int) -> Actor:
        # The driver's thread and this one take turns hundreds of times a second; 5 ms a turn would be most of it.
        sys.setswitchinterval(SWITCH_SECONDS)
        return ThreadActor(factory, index, _fetch, self._changes)

    def wait(self, futures: Sequence[Future], timeout: float | None = None) -> list[Future]:
        if any(isinstance(future, ThreadFuture) for future in futures):
            return self._wait_for_threads_too(futures, timeout)
        references = {_own(future).reference: future for future in futures}
        ready: list[Any] = []
        if timeout != 0.0:
            ready, _ = ray.wait(list(references), num_returns=1, timeout=timeout)
        if ready or timeout == 0.0:
            ready, _ = ray.wait(list(references), num_returns=len(references), timeout=0)
        return [references[reference] for reference in ready]

    def _wait_for_threads_too(self, futures: Sequence[Future], timeout: float | None) -> list[Future]:
        remote = [future for future in futures if isinstance(future, RayFuture)]
        threads = [future for future in futures if isinstance(future, ThreadFuture)]
        if timeout == 0.0:
            return [*(future for future in threads if future.done), *(self.wait(remote, 0.0) if remote else ())]
        for future in remote:
            if not future.watched:
                future.watched = True
                future.reference.future().add_done_callback(partial(_tell_of, self._changes, future))
        own: list[RayFuture | ThreadFuture] = [*remote, *threads]
        self._changes.wait(lambda: any(future.done for future in own), timeout)
        return [future for future in own if future.done]

    def result(self, future: Future) -> Any:
        if isinstance(future, ThreadFuture):
            self._changes.wait(lambda: future.done, None)
            return future.result()
        own = _own(future)
        try:
            small = ray.get(own.reference)
            return small if own.large is None else (small, own.large)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            if isinstance(cause, _VALUE_LOST):
                raise ValueLost(own.actor, f"what actor {own.actor.index} was given is gone: {_told(cause)}") from cause
            raise ActorFailed(own.actor, f"actor {own.actor.index} failed: {cause}") from cause
        except ray.exceptions.RayError as error:
            raise ActorLost(own.actor, f"actor {own.actor.index} is gone: {_told(error)}") from error

    def share(self, value: Any) -> Any:
        return ray.put(value)

    def kill(self, actor: Actor) -> None:
        if isinstance(actor, ThreadActor):
            actor.end()
            return
        assert isinstance(actor, RayActor)
        ray.kill(actor.handle, no_restart=True)
        self.actors.remove(actor)

    def slots(self, role: str) -> int:
        nodes: list[dict[str, Any]] = cast(Any, ray.nodes)()
        held = (
            node["Resources"].get(SLOT, 0)
            for node in nodes
            if node["Alive"] and node["Labels"].get(ROLE_LABEL) in (role, ANY)
        )
        return int(sum(held))


def _own(future: Future) -> RayFuture:
    assert isinstance(future, RayFuture)
    return future


def _tell_of(changes: Changes, future: RayFuture, _: object) -> None:
    changes.tell(future.finish)


def _fetch(actor: Actor, value: Any) -> Any:
    """The value that a reference stands for."""
    if not isinstance(value, ray.ObjectRef):
        return value
    try:
        return ray.get(value)
    except ray.exceptions.RayError as error:
        raise ValueLost(actor, f"what actor {actor.index} was given is gone: {_told(error)}") from error


def _told(error: Exception) -> str:
    """First and last line of what Ray has to say."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"
