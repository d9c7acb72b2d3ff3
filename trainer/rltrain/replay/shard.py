"""ReplayShard: a replay buffer as one of several actors, each holding its share of the transitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rltrain.replay.buffer import Buffer, ReplayStats
from rltrain.rollout.columns import BATCH_INDEXES, GENERATIONS
from rltrain.rollout.multi_agent_batch import AnyBatch
from rltrain.state import State


class Experience(NamedTuple):
    """What a worker sends to a shard: transitions, and float (count,) TD errors where it knows them already.

    The errors are by policy where there are several.
    """

    batch: AnyBatch
    td_error: Any


@dataclass(frozen=True)
class Sampled:
    """What the driver knows of the train batches that a shard gave at once.

    Attributes:
        count: transitions of all; 0 where the shard isn't warm, and there is no batch.
        incarnation: of the shard, which its slots belong to.
        size: transitions that the shard held.
        batches: how many they are.
    """

    count: int
    incarnation: int
    size: int
    batches: int = 1


class PriorityUpdate(NamedTuple):
    """New TD errors, float (n,), for the slots that a batch was sampled from; by policy where there are several."""

    indexes: Any
    generations: Any
    td_error: Any

    @classmethod
    def of(cls, batch: AnyBatch, td_error: Any) -> "PriorityUpdate":
        """For the rows of a sampled batch."""
        return cls(batch[BATCH_INDEXES], batch[GENERATIONS], td_error)

    @property
    def rows(self) -> int:
        """How many slots these are for."""
        each = self.indexes.values() if isinstance(self.indexes, Mapping) else [self.indexes]
        return sum(len(indexes) for indexes in each)


class ReplayShard:
    """A buffer, and which incarnation of its shard it is: one that was lost and made again has other contents.

    Args:
        buffer: empty.
        incarnation: how often this shard has been made before.
    """

    def __init__(self, buffer: Buffer[Any], incarnation: int) -> None:
        self.buffer = buffer
        self.incarnation = incarnation

    def add(self, experience: Experience) -> int:
        """Store transitions; returns how many the shard then holds."""
        self.buffer.add(experience.batch, experience.td_error)
        return len(self.buffer)

    def sample(self, count: int, batches: int = 1) -> tuple[Sampled, tuple[AnyBatch, ...]]:
        """Train batches, each drawn by itself; none where the shard isn't warm."""
        drawn = [self.buffer.sample(count) for _ in range(batches)]
        given = tuple(batch for batch in drawn if batch is not None)
        total = sum(batch.count for batch in given)
        return Sampled(total, self.incarnation, len(self.buffer), len(given)), given

    def update_priorities(self, incarnation: int, *updates: Sequence[PriorityUpdate]) -> int:
        """Give sampled transitions the priorities of their new TD errors; returns how many were stale."""
        each = [update for several in updates for update in several]
        if incarnation != self.incarnation:
            return sum(update.rows for update in each)
        return sum(self.buffer.update_priorities(*update) for update in each)

    def stats(self) -> ReplayStats:
        """The buffer's counters."""
        return self.buffer.stats()

    def get_state(self) -> State:
        """The buffer's state."""
        return self.buffer.get_state()

    def set_state(self, state: State) -> None:
        """Take up a saved state. Raises CheckpointMismatch."""
        self.buffer.set_state(state)
