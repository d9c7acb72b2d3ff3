"""ReplayBuffer: a ring of transitions, sampled uniformly or by priority (Schaul et al. 2016)."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from rltrain.api.errors import CheckpointMismatch, TrainingFailed
from rltrain.replay.sum_tree import PriorityTree
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import BATCH_INDEXES, GENERATIONS, WEIGHTS
from rltrain.rollout.multi_agent_batch import AnyBatch
from rltrain.state import Array, State, content_hash, generator_state, restore_generator

B = TypeVar("B", bound=AnyBatch)


@dataclass(frozen=True)
class ReplayStats:
    """What a buffer holds and has done; counts are of transitions."""

    size: int
    capacity: int
    added: int
    sampled: int
    stale_updates: int


@runtime_checkable
class Buffer(Protocol[B]):
    """What stores batches of a kind and draws from them: see `ReplayBuffer`. Of several policies all is by policy."""

    def __len__(self) -> int: ...

    @property
    def warm(self) -> bool: ...

    def add(self, batch: B, td_error: Any = None) -> None: ...

    def sample(self, count: int) -> B | None: ...

    def update_priorities(self, indexes: Any, generations: Any, td_error: Any) -> int: ...

    def stats(self) -> ReplayStats: ...

    def get_state(self) -> State: ...

    def set_state(self, state: State) -> None: ...

    def content_hash(self) -> str: ...


class ReplayBuffer:
    """Transitions by column, overwritten from the oldest.

    Args:
        capacity: transitions held.
        alpha, beta, eps: a transition's priority is (|TD error| + eps)^alpha, its weight
            (N P)^-beta over the largest such weight in the buffer (eq. 1 and section 3.4).
        prioritized: sample by priority; otherwise uniformly, with weights of 1.
        learning_starts: transitions below which `sample` isn't ready.
        seed: of the sampling.
        name: what errors call this buffer.
    """

    def __init__(
        self,
        capacity: int,
        alpha: float = 0.6,
        beta: float = 0.4,
        eps: float = 1e-6,
        prioritized: bool = True,
        learning_starts: int = 0,
        seed: int = 0,
        name: str = "replay",
    ) -> None:
        self.capacity = capacity
        self.alpha, self.beta, self.eps = alpha, beta, eps
        self.prioritized = prioritized
        self.learning_starts = learning_starts
        self.name = name
        self._rng = np.random.default_rng(seed)
        self._columns: dict[str, Array] = {}
        self._generations = np.zeros(capacity, np.int64)
        self._size = self._cursor = self._added = self._sampled = self._stale = 0
        self._max_priority = 1.0
        if prioritized:
            self._tree = PriorityTree(capacity)

    def __len__(self) -> int:
        return self._size

    @property
    def warm(self) -> bool:
        """Whether there is enough to begin learning."""
        return self._size >= self.learning_starts

    def add(self, batch: Batch, td_error: Array | None = None) -> None:
        """Store transitions; the first batch decides names, dtypes and shapes of the columns.

        Args:
            batch: transitions; of more than `capacity` the last ones stay.
            td_error: float (count,), errors known already; without them rows get the largest priority so far.

        Raises:
            TrainingFailed: columns differ from the first batch's, or a TD error isn't finite.
        """
        if batch.count == 0:
            return
        added = batch.count
        priorities = self._max_priority if td_error is None else self._priorities(td_error)
        if batch.count > self.capacity:
            if not isinstance(priorities, float):
                priorities = priorities[-self.capacity :]
            batch = batch.slice(batch.count - self.capacity, batch.count)
        if not self._columns:
            self._columns = {
                name: np.empty((self.capacity, *column.shape[1:]), column.dtype)
                for name, column in batch.columns.items()
            }
        self._check(batch)
        start, stop = self._cursor, self._cursor + batch.count
        if stop <= self.capacity:
            slots = np.arange(start, stop)
            for name, column in batch.columns.items():
                self._columns[name][start:stop] = column
        else:
            slots = np.arange(start, stop) % self.capacity
            for name, column in batch.columns.items():
                self._columns[name][slots] = column
        self._generations[slots] += 1
        if self.prioritized:
            self._set_priorities(slots, priorities)
        self._cursor = stop % self.capacity
        self._size = min(self._size + batch.count, self.capacity)
        self._added += added

    def sample(self, count: int) -> Batch | None:
        """Draw transitions with replacement, or None while there are fewer than `learning_starts` or `count`.

        By priority one is drawn from each of `count` equal parts of the total (Schaul et al. 2016, B.2.1).

        Returns:
            The stored columns, copied, with WEIGHTS, BATCH_INDEXES and GENERATIONS.
        """
        if not self.warm or self._size < max(count, 1):
            return None
        if self.prioritized:
            mass = (np.arange(count) + self._rng.random(count)) * (self._tree.total / count)
            slots = self._tree.find(mass, self._size)
            weights = (self._tree.leaves[slots] / self._tree.least) ** -self.beta
        else:
            slots = self._rng.integers(self._size, size=count)
            weights = np.ones(count)
        self._sampled += count
        columns = {name: column.take(slots, axis=0) for name, column in self._columns.items()}
        columns[WEIGHTS] = weights.astype(np.float32)
        columns[BATCH_INDEXES] = slots
        columns[GENERATIONS] = self._generations[slots]
        return Batch(columns)

    def update_priorities(self, indexes: Array, generations: Array, td_error: Array) -> int:
        """Give sampled transitions the priorities of their new TD errors.

        Args:
            indexes, generations: int64 (n,), BATCH_INDEXES and GENERATIONS as sampled.
            td_error: float (n,), of either sign.

        Returns:
            How many were dropped because their slot has been overwritten since.

        Raises:
            TrainingFailed: a TD error isn't finite, or a slot doesn't exist; no priority is changed then.
        """
        if not self.prioritized:
            return 0
        # Without a sign, what is below 0 is far above the capacity.
        if indexes.size and np.maximum.reduce(indexes.astype(np.int64, copy=False).view(np.uint64)) >= self.capacity:
            raise TrainingFailed(f"{self.name}: priorities for slots outside 0..{self.capacity - 1}")
        priorities = self._priorities(td_error, indexes)
        fresh = self._generations[indexes] == generations
        dropped = int(fresh.size - np.count_nonzero(fresh))
        if dropped:
            indexes, priorities = indexes[fresh], priorities[fresh]
            self._stale += dropped
        if indexes.size:
            self._set_priorities(indexes, priorities)
        return dropped

    def stats(self) -> ReplayStats:
        """Counters since the buffer began, over resumes."""
        return ReplayStats(self._size, self.capacity, self._added, self._sampled, self._stale)

    def get_state(self) -> State:
        """Everything that sampling depends on, as copies. The tree is its leaves: parents follow from them."""
        return {
            "columns": {name: column[: self._size].copy() for name, column in self._columns.items()},
            "generations": self._generations.copy(),
            "priorities": self._tree.leaves[: self._size].copy() if self.prioritized else None,
            "max_priority": self._max_priority,
            "size": self._size,
            "cursor": self._cursor,
            "added": self._added,
            "sampled": self._sampled,
            "stale_updates": self._stale,
            "rng": generator_state(self._rng),
        }

    def set_state(self, state: State) -> None:
        """Take up a saved state.

        Raises:
            CheckpointMismatch: it is of a buffer with another capacity or another kind of sampling.
        """
        generations, priorities = state["generations"], state["priorities"]
        size, cursor = int(state["size"]), int(state["cursor"])
        columns: dict[str, Array] = state["columns"]
        if len(generations) != self.capacity:
            raise CheckpointMismatch(
                f"the saved replay buffer holds {len(generations)} transitions, this one {self.capacity}: "
                "set buffer_size to the saved one"
            )
        if (priorities is not None) != self.prioritized:
            raise CheckpointMismatch("the saved replay buffer was sampled otherwise: set prioritized_replay as saved")
        lengths = {len(column) for column in columns.values()} | (set() if priorities is None else {len(priorities)})
        if not 0 <= size <= self.capacity or not 0 <= cursor < self.capacity or lengths - {size}:
            raise CheckpointMismatch("the saved replay buffer's counters don't fit its columns")
        if priorities is not None and not (np.isfinite(priorities).all() and (priorities > 0).all()):
            raise CheckpointMismatch("the saved replay buffer has priorities that aren't positive numbers")
        restore_generator(self._rng, state["rng"])
        self._generations = generations.astype(np.int64)
        self._columns = {}
        for name, column in columns.items():
            self._columns[name] = np.empty((self.capacity, *column.shape[1:]), column.dtype)
            self._columns[name][:size] = column
        self._size, self._cursor = size, cursor
        self._added, self._sampled, self._stale = state["added"], state["sampled"], state["stale_updates"]
        if priorities is not None:
            self._tree = PriorityTree(self.capacity)
            if size:
                self._set_priorities(np.arange(size), priorities.astype(np.float64))
        self._max_priority = float(state["max_priority"])

    def content_hash(self) -> str:
        """SHA-256 of the state: contents, priorities, counters and random state."""
        return content_hash(self.get_state())

    def _priorities(self, td_error: Array, slots: Array | None = None) -> Array:
        finite = np.isfinite(td_error)
        if not finite.all():
            row = int(np.argmin(finite))
            slot = "" if slots is None else f" (slot {slots[row]})"
            raise TrainingFailed(
                f"{self.name}: the TD error at index {row}{slot} is {td_error[row]}; priorities stay as they were. "
                "Training has diverged: lower lr, or set grad_clip"
            )
        priorities: Array = (np.abs(td_error, dtype=np.float64) + self.eps) ** self.alpha
        return priorities

    def _set_priorities(self, slots: Array, priorities: Array | float) -> None:
        self._tree.set(slots, priorities)
        largest = priorities if isinstance(priorities, float) else float(np.maximum.reduce(priorities))
        self._max_priority = max(self._max_priority, largest)

    def _check(self, batch: Batch) -> None:
        if batch.columns.keys() != self._columns.keys():
            raise TrainingFailed(f"{self.name}: columns {sorted(batch.columns)}, expected {sorted(self._columns)}")
        for name, column in batch.columns.items():
            stored = self._columns[name]
            if column.shape[1:] != stored.shape[1:] or column.dtype != stored.dtype:
                raise TrainingFailed(
                    f"{self.name}: column {name!r} is {column.dtype}{column.shape[1:]}, "
                    f"expected {stored.dtype}{stored.shape[1:]}"
                )
