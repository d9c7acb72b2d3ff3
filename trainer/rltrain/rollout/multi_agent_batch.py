"""MultiAgentBatch: experience of several agents, by the policies that they have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import ENV_STEP
from rltrain.state import Array, State


class AnyBatch(Protocol):
    """What operators know of a batch, of one policy or of several."""

    @property
    def count(self) -> int:
        """Rows; env steps of several agents."""

    @property
    def steps(self) -> int:
        """Those of them that are learnt."""

    def __getitem__(self, column: str) -> Any:
        """A column, by policy where there are several."""

    def __contains__(self, column: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class MultiAgentBatch:
    """Batches by policy.

    Attributes:
        policies: of each policy, the rows of its agents; some have none.
        count: env steps that these are of, or stand for: an env step is one of all agents together.
    """

    policies: Mapping[str, Batch]
    count: int

    def __getitem__(self, column: str) -> dict[str, Array]:
        """A column of each policy's batch."""
        return {name: batch[column] for name, batch in self.policies.items()}

    def __contains__(self, column: object) -> bool:
        return all(column in batch for batch in self.policies.values())

    @property
    def steps(self) -> int:
        """Env steps that are learnt."""
        return self.count

    @staticmethod
    def concat(batches: "Sequence[MultiAgentBatch]") -> "MultiAgentBatch":
        """All rows of batches with the same policies and columns; their env steps follow one another."""
        first = np.cumsum([0, *(batch.count for batch in batches)]).tolist()
        rows = {
            name: Batch.concat([_later(batch.policies[name], by) for batch, by in zip(batches, first, strict=False)])
            for name in batches[0].policies
        }
        return MultiAgentBatch(rows, first[-1])


def concat(batches: Sequence[AnyBatch]) -> AnyBatch:
    """All rows of batches of one kind."""
    several = [batch for batch in batches if isinstance(batch, MultiAgentBatch)]
    return MultiAgentBatch.concat(several) if several else Batch.concat([b for b in batches if isinstance(b, Batch)])


def part_of(batch: AnyBatch, rows: Callable[[int], slice]) -> AnyBatch:
    """Some of a batch's rows, of each policy's where there are several.

    Args:
        rows: which of so many.
    """
    if isinstance(batch, MultiAgentBatch):
        parts = {name: its.slice(rows(its.count).start, rows(its.count).stop) for name, its in batch.policies.items()}
        own = rows(batch.count)
        return MultiAgentBatch(parts, own.stop - own.start)
    assert isinstance(batch, Batch)
    return batch.slice(rows(batch.count).start, rows(batch.count).stop)


def batch_state(batch: AnyBatch) -> State:
    """A batch as a state; it shares memory."""
    if isinstance(batch, MultiAgentBatch):
        return {"policies": {name: dict(rows.columns) for name, rows in batch.policies.items()}, "count": batch.count}
    assert isinstance(batch, Batch)
    return {"columns": dict(batch.columns)}


def batch_of(state: State) -> AnyBatch:
    """The batch that a state is of."""
    if "policies" not in state:
        return Batch(state["columns"])
    return MultiAgentBatch({name: Batch(rows) for name, rows in state["policies"].items()}, int(state["count"]))


def _later(rows: Batch, by: int) -> Batch:
    """The rows with their env steps counted from `by`."""
    return rows.with_columns(**{ENV_STEP: rows[ENV_STEP] + by}) if by and ENV_STEP in rows else rows
