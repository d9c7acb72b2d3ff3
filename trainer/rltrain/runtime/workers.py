"""Rollout workers: each samples by itself, with the weights that the driver publishes."""

from collections.abc import Sequence
from typing import Any

from rltrain.flow import Actor, Backend, ShardFailure, get_metrics
from rltrain.flow.metrics import STEPS_SAMPLED
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
            self._sent.pop(actor.index, None)
            state = self._states.pop(actor.index, None)
            if state is not None:
                actor.apply(_restore, self.backend.share(state))

    def actors(self) -> Sequence[Actor]:
        return [self._live[index] for index in sorted(self._live)]

    def pending(self) -> Sequence[Any]:
        return self._crew.pending()

    def succeeded(self, actor: Actor) -> None:
        self._crew.succeeded(actor)

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        for failure in failures:
            self._live.pop(failure.actor.index, None)
        self._crew.replace(failures)

    def publish_weights(self) -> None:
        self._version += 1
        self._shared = None

    def sampling(self, actor: Actor) -> Call:
        if self._shared is None:
            self._shared = self.backend.share(self.local.get_weights())
        fresh = self._sent.get(actor.index) != self._version
        self._sent[actor.index] = self._version
        env_steps = get_metrics().counters[STEPS_SAMPLED]
        return Call(sample_fragment, (env_steps, self._shared if fresh else None))

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
        return {"local": self.local.get_state(), "actors": states}

    def learned_state(self) -> State:
        """Networks and optimizer of the policy that learns."""
        return self.local.policy.learned_state()

    def set_state(self, state: State) -> None:
        """Restore the driver's worker now and each actor once it is ready."""
        self.local.set_state(state["local"])
        self._states = {int(index): saved for index, saved in state["actors"].items()}
        self.publish_weights()

    def stop(self) -> None:
        """End all actors."""
        self._crew.dismiss(self.actors())
        self._live.clear()


def _state(worker: RolloutWorker) -> State:
    return worker.get_state()


def _restore(worker: RolloutWorker, state: State) -> None:
    worker.set_state(state)
