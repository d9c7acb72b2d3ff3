"""Ray back end: each actor is a process on a machine of its role."""

from collections.abc import Callable, Sequence
from inspect import isgenerator
from typing import Any, Final, cast

import ray
import ray.exceptions

from rltrain.flow.actors import Actor, ActorFailed, ActorHost, ActorLost, Future, drive

SLOT: Final = "slot"
"""Resource of which a machine has one for each actor that it can hold."""
ROLE_LABEL: Final = "role"
ANY_ROLE: Final = "any"
"""Role of a machine that takes actors of every role."""


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

    def control(self, function: Callable[..., Any], *args: Any) -> Future:
        return RayFuture(self.handle.control.remote(function, *args), self)


class RayFuture:
    """A result somewhere in the cluster."""

    def __init__(self, reference: Any, actor: Actor) -> None:
        self.reference = reference
        self.actor = actor


class RayBackend:
    """Actors by role, one to a slot.

    Args:
        gpus: GPUs that each actor gets; only a role with GPUs in its machines has any.

    Attributes:
        actors: those that haven't been killed; they end with the session.
    """

    def __init__(self, gpus: float = 0) -> None:
        self._gpus = gpus
        self.actors: list[RayActor] = []

    def create(self, factory: Callable[[], Any], *, role: str, index: int) -> Actor:
        handle = _RemoteHost.options(
            num_cpus=0, num_gpus=self._gpus, resources={SLOT: 1}, label_selector={ROLE_LABEL: f"in({role},{ANY_ROLE})"}
        ).remote(factory)
        actor = RayActor(handle, role, index)
        self.actors.append(actor)
        return actor

    def wait(self, futures: Sequence[Future], timeout: float | None = None) -> list[Future]:
        references = {_own(future).reference: future for future in futures}
        ready, _ = ray.wait(list(references), num_returns=1, timeout=timeout)
        if ready:
            ready, _ = ray.wait(list(references), num_returns=len(references), timeout=0)
        return [references[reference] for reference in ready]

    def result(self, future: Future) -> Any:
        own = _own(future)
        try:
            return ray.get(own.reference)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            raise ActorFailed(own.actor, f"actor {own.actor.index} failed: {cause}") from cause
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            told = lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"
            raise ActorLost(own.actor, f"actor {own.actor.index} is gone: {told}") from error

    def share(self, value: Any) -> Any:
        return ray.put(value)

    def kill(self, actor: Actor) -> None:
        assert isinstance(actor, RayActor)
        ray.kill(actor.handle, no_restart=True)
        self.actors.remove(actor)

    def slots(self, role: str) -> int:
        nodes: list[dict[str, Any]] = cast(Any, ray.nodes)()
        held = (
            node["Resources"].get(SLOT, 0)
            for node in nodes
            if node["Alive"] and node["Labels"].get(ROLE_LABEL) in (role, ANY_ROLE)
        )
        return int(sum(held))


def _own(future: Future) -> RayFuture:
    assert isinstance(future, RayFuture)
    return future
