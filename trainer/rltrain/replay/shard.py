"""ReplayShard: a replay buffer as one of several actors, each holding its share of the transitions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rltrain.replay.buffer import ReplayBuffer, ReplayStats
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import BATCH_INDEXES, GENERATIONS
from rltrain.state import Array, State


class Experience(NamedTuple):
    """What a worker sends to a shard: transitions, and float (count,) TD errors where it knows them already."""

    batch: Batch
    td_error: Array | None


@dataclass(frozen=True)
class Sampled:
    """What the driver knows of a train batch that a shard gave.

    Attributes:
        count: transitions; 0 where the shard isn't warm, and there is no batch.
        incarnation: of the shard, which its slots belong to.
        size: transitions that the shard held.
    """

    count: int
    incarnation: int
    size: int


class PriorityUpdate(NamedTuple):
    """New TD errors, float (n,), for the slots that a batch was sampled from."""

    indexes: Array
    generations: Array
    td_error: Array

    @classmethod
    def of(cls, batch: Batch, td_error: Array) -> "PriorityUpdate":
        """For the rows of a sampled batch."""
        return cls(batch[BATCH_INDEXES], batch[GENERATIONS], td_error)


class ReplayShard:
    """A buffer, and which incarnation of its shard it is: one that was lost and made again has other contents.

    Args:
        buffer: empty.
        incarnation: how often this shard has been made before.
    """

    def __init__(self, buffer: ReplayBuffer, incarnation: int) -> None:
        self.buffer = buffer
        self.incarnation = incarnation

    def add(self, experience: Experience) -> int:
        """Store transitions; returns how many the shard then holds."""
        self.buffer.add(experience.batch, experience.td_error)
        return len(self.buffer)

    def sample(self, count: int) -> tuple[Sampled, Batch | None]:
        """A train batch, unless the shard isn't warm."""
        batch = self.buffer.sample(count)
        size = len(self.buffer)
        return Sampled(0 if batch is None else batch.count, self.incarnation, size), batch

    def update_priorities(self, incarnation: int, *updates: PriorityUpdate) -> int:
        """Give sampled transitions the priorities of their new TD errors; returns how many were stale."""
        if incarnation != self.incarnation:
            return sum(len(update.indexes) for update in updates)
        indexes, generations, errors = (np.concatenate(parts) for parts in zip(*updates, strict=True))
        return self.buffer.update_priorities(indexes, generations, errors)

    def stats(self) -> ReplayStats:
        """The buffer's counters."""
        return self.buffer.stats()

    def get_state(self) -> State:
        """The buffer's state."""
        return self.buffer.get_state()

    def set_state(self, state: State) -> None:
        """Take up a saved state. Raises CheckpointMismatch."""
        self.buffer.set_state(state)
