"""Storing experience in replay shards and taking it out again; the driver only passes references on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from rltrain.flow import (
    NOT_READY,
    PROGRESS,
    Actor,
    Future,
    LocalIterator,
    Outstanding,
    ParallelIterator,
    Shards,
    Signal,
    get_metrics,
)
from rltrain.flow.parallel import Call
from rltrain.ops.ledger import Ledger
from rltrain.ops.rollouts import Delivered
from rltrain.replay.shard import ReplayShard, Sampled

ADDS_IN_FLIGHT: Final = 16
"""Fragments on their way to shards at most: more would fill the object store."""


class ReplayShards(Shards, Protocol):
    """Actors that hold a `ReplayShard` each."""

    @property
    def warm(self) -> Shards:
        """Those that have enough to sample from, as far as the driver knows."""

    def stored(self, actor: Actor, count: int) -> bool:
        """Transitions were sent to a shard; whether it is warm with them."""

    def holds(self, actor: Actor, size: int) -> None:
        """A shard has told how many transitions it holds."""


@dataclass(frozen=True)
class Replayed:
    """Train batches, given at once, of which the driver holds only a reference."""

    sampled: Sampled
    batches: Any

    @property
    def count(self) -> int:
        """Transitions."""
        return self.sampled.count


class StoreToReplayActors:
    """Send each fragment to a shard drawn at random; what a warm shard gets earns credit for training.

    Args:
        shards: where to.
        ledger: what keeps the balance of sampling and training.
        seed: of the draws, each of which depends on its number alone.
    """

    def __init__(self, shards: ReplayShards, ledger: Ledger, seed: int) -> None:
        self._shards = shards
        self._ledger = ledger
        self._seed = seed
        self._adds = Outstanding(shards.backend, ADDS_IN_FLIGHT, shards.failed)

    def __call__(self, delivered: Delivered) -> Delivered | Signal:
        self._shards.refresh()
        full, actors = self._adds.full, self._shards.actors()
        if full or not actors:
            return NOT_READY
        counters = get_metrics().counters
        draw = np.random.SeedSequence([self._seed, counters["num_fragments_stored"]]).generate_state(1)[0]
        counters["num_fragments_stored"] += 1
        actor = actors[int(draw) % len(actors)]
        warm = self._shards.stored(actor, delivered.count)
        self._adds.add(actor.apply(ReplayShard.add, delivered.experience))
        if warm:
            self._ledger.earn(delivered.count)
        return delivered

    def waits(self) -> Sequence[Future]:
        return [*self._adds.pending, *self._shards.pending()]


def ParallelReplay(  # noqa: N802 - operators of the plan language are written like nouns
    shards: ReplayShards, train_batch_size: int, ledger: Ledger, num_async: int
) -> LocalIterator[Replayed]:
    """Train batches, those that come together from one shard, with `num_async` calls in flight on each that is warm.

    Not ready while no shard is warm or the ledger's credit doesn't cover a batch.
    """

    def pay(actor_and_item: tuple[Actor, tuple[Sampled, Any]]) -> Replayed | Signal:
        actor, (sampled, batches) = actor_and_item
        shards.holds(actor, sampled.size)
        if sampled.count == 0:
            return PROGRESS
        ledger.spend(sampled.count)
        return Replayed(sampled, batches)

    samples: ParallelIterator[tuple[Sampled, Any]] = ParallelIterator(
        shards.warm, lambda actor: Call(ReplayShard.sample, (train_batch_size, ledger.together), split=True)
    )
    flow = samples.gather_async(num_async, name="replay").zip_with_source_actor()
    return flow.only_while(lambda: ledger.due).for_each(pay)
