"""Replay buffers of several policies: each policy's steps are drawn by themselves, or whole env steps are."""

from collections.abc import Mapping

import numpy as np

from rltrain.api.errors import CheckpointMismatch
from rltrain.replay.buffer import ReplayBuffer, ReplayStats
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import BATCH_INDEXES, ENV_STEP, GENERATIONS, WEIGHTS
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.state import Array, State, content_hash, generator_state, restore_generator


class IndependentBuffers:
    """A replay buffer for each policy.

    Args:
        buffers: by policy, ready from their first rows on.
        learning_starts: env steps below which `sample` isn't ready.
    """

    def __init__(self, buffers: Mapping[str, ReplayBuffer], learning_starts: int) -> None:
        self.buffers = buffers
        self.learning_starts = learning_starts
        self._env_steps = 0

    def __len__(self) -> int:
        """Env steps that were stored, or the rows of the policy that has most where even those are fewer."""
        return min(self._env_steps, max(len(buffer) for buffer in self.buffers.values()))

    @property
    def warm(self) -> bool:
        """Whether there is enough to begin learning."""
        return self._env_steps >= self.learning_starts

    def add(self, batch: MultiAgentBatch, td_error: Mapping[str, Array] | None = None) -> None:
        """Store each policy's rows, see `ReplayBuffer.add`."""
        for name, buffer in self.buffers.items():
            buffer.add(batch.policies[name], None if td_error is None else td_error.get(name))
        self._env_steps += batch.count

    def sample(self, count: int) -> MultiAgentBatch | None:
        """A batch of `count` rows of each policy that has as many; None where none has, or before learning starts.

        The batch stands for `count` env steps; where rows are sequences, for as many as are learnt on average.
        """
        if not self.warm:
            return None
        drawn = {name: batch for name, buffer in self.buffers.items() if (batch := buffer.sample(count)) is not None}
        if not drawn:
            return None
        return MultiAgentBatch(drawn, round(sum(batch.steps for batch in drawn.values()) / len(drawn)))

    def update_priorities(
        self, indexes: Mapping[str, Array], generations: Mapping[str, Array], td_error: Mapping[str, Array]
    ) -> int:
        """See `ReplayBuffer.update_priorities`; all by policy."""
        return sum(
            self.buffers[name].update_priorities(indexes[name], generations[name], errors)
            for name, errors in td_error.items()
        )

    def stats(self) -> ReplayStats:
        """Counters of all policies' rows together."""
        each = [buffer.stats() for buffer in self.buffers.values()]
        return ReplayStats(
            size=sum(stats.size for stats in each),
            capacity=sum(stats.capacity for stats in each),
            added=sum(stats.added for stats in each),
            sampled=sum(stats.sampled for stats in each),
            stale_updates=sum(stats.stale_updates for stats in each),
        )

    def get_state(self) -> State:
        """Everything that sampling depends on, as copies."""
        policies = {name: buffer.get_state() for name, buffer in self.buffers.items()}
        return {"size": len(self), "env_steps": self._env_steps, "policies": policies}

    def set_state(self, state: State) -> None:
        """Take up a saved state. Raises CheckpointMismatch."""
        if "policies" not in state:
            raise CheckpointMismatch("the saved replay buffer was drawn from otherwise: set replay_mode as saved")
        if state["policies"].keys() != self.buffers.keys():
            raise CheckpointMismatch(
                f"the saved replay buffer is of the policies {', '.join(state['policies'])}, this one of "
                f"{', '.join(self.buffers)}: set multiagent as saved"
            )
        for name, buffer in self.buffers.items():
            buffer.set_state(state["policies"][name])
        self._env_steps = int(state["env_steps"])

    def content_hash(self) -> str:
        """SHA-256 of the state."""
        return content_hash(self.get_state())


class LockstepBuffer:
    """A ring of env steps, each with the rows of all policies; drawn uniformly.

    Args:
        capacity: env steps held.
        widths: rows that each policy has of an env step at most: its agents.
        learning_starts: env steps below which `sample` isn't ready.
        seed: of the sampling.
    """

    prioritized = False

    def __init__(self, capacity: int, widths: Mapping[str, int], learning_starts: int = 0, seed: int = 0) -> None:
        self.capacity = capacity
        self.learning_starts = learning_starts
        self._rng = np.random.default_rng(seed)
        self._columns: dict[str, dict[str, Array]] = {name: {} for name in widths}
        self._there = {name: np.zeros((capacity, width), bool) for name, width in widths.items()}
        self._generations = np.zeros(capacity, np.int64)
        self._size = self._cursor = self._added = self._sampled = 0

    def __len__(self) -> int:
        return self._size

    @property
    def warm(self) -> bool:
        """Whether there is enough to begin learning."""
        return self._size >= self.learning_starts

    def add(self, batch: MultiAgentBatch, td_error: Mapping[str, Array] | None = None) -> None:
        """Store the rows of each env step, told by their ENV_STEP, in one slot; the oldest steps make room."""
        skipped = max(batch.count - self.capacity, 0)
        slots = (self._cursor + np.arange(batch.count)) % self.capacity
        for name, there in self._there.items():
            rows = batch.policies[name]
            order = np.argsort(rows[ENV_STEP], kind="stable")
            steps = rows[ENV_STEP][order]
            place = np.arange(steps.size) - np.searchsorted(steps, steps)  # among the rows of its env step
            order, steps, place = (each[steps >= skipped] for each in (order, steps, place))
            there[slots] = False
            there[slots[steps], place] = True
            for column, values in rows.columns.items():
                if column not in self._columns[name]:
                    self._columns[name][column] = np.zeros((*there.shape, *values.shape[1:]), values.dtype)
                self._columns[name][column][slots[steps], place] = values[order]
        self._generations[slots[skipped:]] += 1
        self._cursor = (self._cursor + batch.count) % self.capacity
        self._size = min(self._size + batch.count, self.capacity)
        self._added += batch.count

    def sample(self, count: int) -> MultiAgentBatch | None:
        """Draw env steps with replacement: of each policy all rows that it has of them.

        Returns:
            The stored columns, copied, with WEIGHTS of 1, and as BATCH_INDEXES and GENERATIONS those of the env
            steps. None while there are fewer than `learning_starts` or `count`.
        """
        if not self.warm or self._size < max(count, 1):
            return None
        slots = self._rng.integers(self._size, size=count)
        self._sampled += count
        drawn: dict[str, Batch] = {}
        for name, there in self._there.items():
            mask = there[slots]
            columns = {column: values[slots][mask] for column, values in self._columns[name].items()}
            columns[BATCH_INDEXES] = np.repeat(slots, mask.sum(axis=1))
            columns[GENERATIONS] = self._generations[columns[BATCH_INDEXES]]
            columns[WEIGHTS] = np.ones(len(columns[BATCH_INDEXES]), np.float32)
            if mask.any():
                drawn[name] = Batch(columns)
        return MultiAgentBatch(drawn, count)

    def update_priorities(
        self, indexes: Mapping[str, Array], generations: Mapping[str, Array], td_error: Mapping[str, Array]
    ) -> int:
        """There are none; no update is stale."""
        return 0

    def stats(self) -> ReplayStats:
        """Counters of env steps."""
        return ReplayStats(self._size, self.capacity, self._added, self._sampled, stale_updates=0)

    def get_state(self) -> State:
        """Everything that sampling depends on, as copies."""
        return {
            "columns": {
                name: {column: values[: self._size].copy() for column, values in columns.items()}
                for name, columns in self._columns.items()
            },
            "there": {name: there[: self._size].copy() for name, there in self._there.items()},
            "generations": self._generations.copy(),
            "priorities": None,
            "size": self._size,
            "cursor": self._cursor,
            "added": self._added,
            "sampled": self._sampled,
            "rng": generator_state(self._rng),
        }

    def set_state(self, state: State) -> None:
        """Take up a saved state. Raises CheckpointMismatch."""
        if "there" not in state:
            raise CheckpointMismatch("the saved replay buffer was drawn from otherwise: set replay_mode as saved")
        size, cursor = int(state["size"]), int(state["cursor"])
        if len(state["generations"]) != self.capacity or not 0 <= size <= self.capacity > cursor >= 0:
            raise CheckpointMismatch(
                f"the saved replay buffer holds {len(state['generations'])} env steps, this one {self.capacity}: "
                "set buffer_size to the saved one"
            )
        widths = {name: there.shape[1] for name, there in self._there.items()}
        saved = {name: there.shape[1] for name, there in state["there"].items()}
        if saved != widths:
            raise CheckpointMismatch(
                f"the saved replay buffer has rows of {saved} agents, this one of {widths}: set multiagent as saved"
            )
        restore_generator(self._rng, state["rng"])
        self._generations = state["generations"].astype(np.int64)
        for name, there in self._there.items():
            there[:] = False
            there[:size] = state["there"][name]
            self._columns[name] = {}
            for column, values in state["columns"][name].items():
                self._columns[name][column] = np.zeros((self.capacity, *values.shape[1:]), values.dtype)
                self._columns[name][column][:size] = values
        self._size, self._cursor = size, cursor
        self._added, self._sampled = int(state["added"]), int(state["sampled"])

    def content_hash(self) -> str:
        """SHA-256 of the state."""
        return content_hash(self.get_state())
