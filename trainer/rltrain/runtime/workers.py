"""Rollout workers: each samples by itself, with the weights that the driver publishes."""

from collections.abc import Sequence
from typing import Any

from rltrain.flow import Actor, ActorFailed, Backend, Outstanding, ShardFailure, get_metrics
from rltrain.flow.metrics import FRAGMENTS_LOST, STEPS_SAMPLED
from rltrain.flow.parallel import Call
from rltrain.ops.rollouts import sample_fragment
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.crew import Crew
from rltrain.state import State


class RolloutWorkers:
    """The driver's own worker and the actors that sample for it.

    Args:
        local: whose policy learns.
        crew: the actors.
    """

    def __init__(self, local: RolloutWorker, crew: Crew) -> None:
        self.local = local
        self._crew = crew
        self._live: dict[int, Actor] = {}
        self._version = 0
        self._sent: dict[int, int] = {}
        self._shared: Any = None
        self._states: dict[int, State] = {}
        self._syncs = Outstanding(crew.backend, None, self._unsynced)  # a worker that got weights samples next

    def resize(self, wanted: int) -> None:
        """Have so many actors, from the next call on. Those beyond end at once, and nobody misses what they owe."""
        self._crew.resize(wanted)
        for index in [index for index in self._live if index > wanted]:
            self.backend.kill(self._live.pop(index))
        self._forget_beyond()

    @property
    def backend(self) -> Backend:
        return self._crew.backend

    @property
    def wanted(self) -> int:
        return self._crew.wanted

    @property
    def minimum(self) -> int:
        """Actors below which nothing can be sampled."""
        return min(1, self._crew.wanted)

    def refresh(self) -> None:
        for actor in self._crew.arrived():
            self._live[actor.index] = actor
            state = self._states.pop(actor.index, None)
            if state is None:
                self._sent.pop(actor.index, None)
            else:
                actor.apply(_restore, self.backend.share(state))

    def actors(self) -> Sequence[Actor]:
        return [self._live[index] for index in sorted(self._live)]

    def pending(self) -> Sequence[Any]:
        return self._crew.pending()

    def succeeded(self, actor: Actor) -> None:
        self._crew.succeeded(actor)

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        # One that was asked for several things fails in each of them; once is enough.
        new = [failure for failure in failures if self._live.get(failure.actor.index) is failure.actor]
        for failure in new:
            self._live.pop(failure.actor.index, None)
        get_metrics().counters[FRAGMENTS_LOST] += len(new)
        self._crew.replace(new)

    def publish_weights(self, *, only_new: bool = False) -> None:
        self._version += 0 if only_new else 1
        self._shared = None

    def send_weights(self, actor: Actor) -> None:
        self._syncs.add(actor.apply(_set_weights, self._weights()))

    def sampling(self, actor: Actor) -> Call:
        fresh = self._sent.get(actor.index) != self._version
        self._sent[actor.index] = self._version
        env_steps = get_metrics().counters[STEPS_SAMPLED]
        return Call(sample_fragment, (env_steps, self.wanted, self._weights() if fresh else None))

    def get_state(self) -> State:
        """States of the driver's worker and of every healthy actor; one that fails meanwhile is left out."""
        actors = self.actors()
        futures = [actor.apply(_state) for actor in actors]
        states: dict[str, State] = {}
        for actor, future in zip(actors, futures, strict=True):
            try:
                states[str(actor.index)] = self.backend.result(future)
            except ShardFailure as failure:
                self.failed([failure])
        current = [index for index, version in sorted(self._sent.items()) if version == self._version]
        return {"local": self.local.get_state(), "actors": states, "current": current}

    def newest_weights(self) -> State | None:
        """Those of the policy that learns."""
        return self.local.get_weights()

    def learned_state(self) -> State:
        """Networks and optimizer of the policy that learns."""
        return self.local.policy.learned_state()

    def set_state(self, state: State) -> None:
        """Restore the driver's worker now and each actor once it is ready."""
        self.local.set_state(state["local"])
        self._states = {int(index): saved for index, saved in state["actors"].items()}
        self.publish_weights()
        # Those that had the newest weights have them again, once they are restored.
        self._sent = {int(index): self._version for index in state["current"] if int(index) in self._states}
        self._forget_beyond()  # there may have been more of them

    def _forget_beyond(self) -> None:
        """One that comes later under such an index is new."""
        for known in (self._states, self._sent):
            for index in [index for index in known if index > self.wanted]:
                del known[index]

    def _weights(self) -> Any:
        """A reference to the local policy's weights as last published."""
        if self._shared is None:
            self._shared = self.backend.share(self.local.get_weights())
        return self._shared

    def _unsynced(self, failures: Sequence[ShardFailure]) -> None:
        """A lost worker is noticed, and replaced, where its sample is awaited; weights that don't fit are an error."""
        self.failed([failure for failure in failures if isinstance(failure, ActorFailed)])

    def stop(self) -> None:
        """End all actors."""
        self._crew.dismiss(self.actors())
        self._live.clear()


def _set_weights(worker: RolloutWorker, weights: State) -> None:
    worker.set_weights(weights)


def _state(worker: RolloutWorker) -> State:
    return worker.get_state()


def _restore(worker: RolloutWorker, state: State) -> None:
    worker.set_state(state)
