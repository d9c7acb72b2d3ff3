"""Replay shards as actors: made, fed, restored from the newest checkpoint when one is lost."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rltrain.api.config import ApexClassicConfig
from rltrain.api.errors import RltrainError, TrainingFailed
from rltrain.flow import Actor, ActorFailed, Backend, Future, Outstanding, ShardFailure, Shards, ValueLost, get_metrics
from rltrain.flow.metrics import BATCHES_LOST
from rltrain.models.agents import Roster
from rltrain.replay.make import make_buffer
from rltrain.replay.shard import ReplayShard
from rltrain.runtime.crew import Crew
from rltrain.state import State

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MakeShard:
    """Makes a shard where its actor lives: its share of capacity and of the steps before learning starts."""

    config: ApexClassicConfig
    seed: int
    roster: Roster | None = None

    @property
    def count(self) -> int:
        """Shards."""
        return self.config.optimizer.num_replay_buffer_shards

    @property
    def warm_from(self) -> int:
        """Transitions from which a shard can be sampled from."""
        return max(self.config.learning_starts // self.count, self.config.train_batch_size)

    @property
    def capacity(self) -> int:
        """Transitions that a shard holds."""
        return self.config.buffer_size // self.count

    def __call__(self, index: int, incarnation: int) -> ReplayShard:
        share = self.config.model_copy(update={"buffer_size": self.capacity, "learning_starts": self.warm_from})
        seeds = np.random.SeedSequence([self.seed, index, incarnation])
        buffer = make_buffer(share, int(seeds.generate_state(1)[0]), self.roster, name=f"replay shard {index}")
        return ReplayShard(buffer, incarnation)


class ShardActors:
    """The shards of a replay buffer.

    Args:
        crew: the actors.
        make: what they were made with.

    Attributes:
        saved: brings a shard's state from the newest checkpoint, where there is one.
    """

    def __init__(self, crew: Crew, make: MakeShard) -> None:
        self.saved: Callable[[int], State | None] = lambda index: None
        self._crew = crew
        self._make = make
        self._live: dict[int, Actor] = {}
        self._sizes: dict[int, int] = {}
        self._states: dict[int, State] = {}
        self._lost: set[int] = set()
        self._restoring = Outstanding(crew.backend, None, self.failed)
        self.warm: Shards = _Warm(self)

    @property
    def backend(self) -> Backend:
        return self._crew.backend

    @property
    def wanted(self) -> int:
        return self._crew.wanted

    def refresh(self) -> None:
        for actor in self._crew.arrived():
            self._live[actor.index] = actor
            self._sizes[actor.index] = 0
            state = self._states.pop(actor.index, None)
            if actor.index in self._lost:
                self._lost.remove(actor.index)
                state = self.saved(actor.index) if state is None else state
                what = "restored" if state is not None else "emptied"
                get_metrics().counters[f"num_replay_shards_{what}"] += 1
                log.warning("replay shard %d is there again, %s", actor.index, what)
            if state is not None:
                self._sizes[actor.index] = int(state["size"])
                self._restoring.add(actor.apply(ReplayShard.set_state, self.backend.share(state)))
        self._restoring.reap()

    def actors(self) -> Sequence[Actor]:
        return [self._live[index] for index in sorted(self._live)]

    def is_warm(self, actor: Actor) -> bool:
        """Whether it has enough to sample from, as far as the driver knows."""
        return self._sizes[actor.index] >= self._make.warm_from

    def pending(self) -> Sequence[Future]:
        return self._crew.pending()

    def succeeded(self, actor: Actor) -> None:
        self._crew.succeeded(actor)

    def owns(self, actor: Actor) -> bool:
        """Whether it is one of these."""
        return self._live.get(actor.index) is actor

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        """Make lost ones again. Raises RltrainError when that is hopeless, or the shard's own error."""
        for failure in failures:
            if isinstance(failure, ValueLost):
                get_metrics().counters[BATCHES_LOST] += 1
                log.warning("experience is lost on its way to replay shard %d: %s", failure.actor.index, failure)
            elif not self.owns(failure.actor):
                continue  # it has been told of already
            elif isinstance(failure, ActorFailed):
                # What a shard refuses now it would refuse again: making it anew would only cost its contents.
                cause = failure.__cause__
                if isinstance(cause, RltrainError):
                    raise cause
                raise TrainingFailed(f"replay shard {failure.actor.index} failed: {cause}") from cause
            else:
                del self._live[failure.actor.index]
                self._lost.add(failure.actor.index)
                self._crew.replace([failure])

    def stored(self, actor: Actor, count: int) -> bool:
        self._sizes[actor.index] = min(self._sizes[actor.index] + count, self._make.capacity)
        return self.is_warm(actor)

    def holds(self, actor: Actor, size: int) -> None:
        if size < self._make.warm_from:
            self._sizes[actor.index] = size

    def part(self, index: int) -> "ShardPart":
        """What checkpoints hold of a shard."""
        return ShardPart(self, index)

    def get_state(self, index: int) -> State:
        """A shard's state; of one that is lost, what it will have when it is there again."""
        actor = self._live.get(index)
        if actor is not None:
            state: State = self.backend.result(actor.apply(ReplayShard.get_state))
            self._restoring.reap()  # what could not be restored must not be saved
            return state
        later = self._states.get(index) or self.saved(index)
        return self._make(index, 0).get_state() if later is None else later

    def set_state(self, index: int, state: State) -> None:
        """Restore a shard once it is there."""
        self._states[index] = state


@dataclass(frozen=True)
class ShardPart:
    """One shard's part of a checkpoint."""

    shards: ShardActors
    index: int

    def get_state(self) -> State:
        return self.shards.get_state(self.index)

    def set_state(self, state: State) -> None:
        self.shards.set_state(self.index, state)


class _Warm:
    """Those shards that can be sampled from."""

    def __init__(self, shards: ShardActors) -> None:
        self._shards = shards
        self.backend = shards.backend
        self.refresh = shards.refresh
        self.pending = shards.pending
        self.succeeded = shards.succeeded
        self.failed = shards.failed

    def actors(self) -> Sequence[Actor]:
        return [actor for actor in self._shards.actors() if self._shards.is_warm(actor)]
