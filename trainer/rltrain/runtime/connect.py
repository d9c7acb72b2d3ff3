"""How actors are joined into a group that averages over its members."""

from collections.abc import Sequence
from typing import Literal, Protocol

from rltrain.flow import Actor, Backend
from rltrain.flow.serial import SerialBackend


class Connect(Protocol):
    """Makes a process group of actors, in the given order. Raises ShardFailure."""

    def __call__(self, actors: Sequence[Actor]) -> None: ...


def connection(backend: Backend, kind: Literal["gloo", "nccl"], timeout_s: float) -> Connect:
    """How a back end's actors are joined.

    Args:
        kind: what averages, where the actors are processes.
        timeout_s: longest that one operation may take before the group is given up.
    """
    if isinstance(backend, SerialBackend):
        return backend.join

    from rltrain.runtime import collective

    def connect(actors: Sequence[Actor]) -> None:
        place = backend.result(actors[0].apply(collective.open_store, timeout_s))
        futures = [
            actor.apply(collective.join, place, position, len(actors), kind, timeout_s)
            for position, actor in enumerate(actors)
        ]
        waiting = list(futures)
        while waiting:
            for future in backend.wait(waiting):
                waiting.remove(future)
                backend.result(future)

    return connect
