"""Batch: an immutable table of transitions, or of sequences of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from rltrain.rollout.columns import SEQ_LENS
from rltrain.state import Array


@dataclass(frozen=True, slots=True, init=False)
class Batch:
    """Columns of equal length, by the names in `rollout.columns`.

    `count` is of rows. Methods return new batches; `slice` shares memory with its source, `take` and `concat` copy.

    Raises:
        ValueError: columns differ in their number of rows.
    """

    columns: Mapping[str, Array]
    count: int = field(compare=False)

    def __init__(self, columns: Mapping[str, Array]) -> None:
        count = len(next(iter(columns.values()))) if columns else 0
        for name, column in columns.items():
            if len(column) != count:
                raise ValueError(f"column {name!r} has {len(column)} rows where the first has {count}")
        object.__setattr__(self, "columns", MappingProxyType(dict(columns)))
        object.__setattr__(self, "count", count)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (dict(self.columns),)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return self.count

    @property
    def steps(self) -> int:
        """Transitions that are learnt: one a row, or those of each sequence without burn-in and padding."""
        return int(self[SEQ_LENS].sum()) if SEQ_LENS in self else self.count

    def slice(self, start: int, stop: int) -> "Batch":
        """Rows `start` to `stop` (excluded)."""
        return Batch({name: column[start:stop] for name, column in self.columns.items()})

    def take(self, rows: Array) -> "Batch":
        """The rows at the given indexes, in that order."""
        return Batch({name: column[rows] for name, column in self.columns.items()})

    def with_columns(self, **columns: Array) -> "Batch":
        """This batch with columns added or replaced."""
        return Batch({**self.columns, **columns})

    @staticmethod
    def concat(batches: "Sequence[Batch]") -> "Batch":
        """All rows of batches with the same columns.

        Raises:
            ValueError: their columns differ.
        """
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return Batch({})
        names = batches[0].columns.keys()
        for batch in batches[1:]:
            if batch.columns.keys() != names:
                raise ValueError(f"columns differ: {sorted(names)} and {sorted(batch.columns)}")
        return Batch({name: np.concatenate([batch[name] for batch in batches]) for name in names})
