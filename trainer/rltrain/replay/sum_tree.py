"""Sum and minimum trees over float64 leaves, updated and searched a level at a time.

Each node has 16 children rather than 2: a level is a handful of NumPy calls whatever its width, so fewer
levels are faster (1M leaves: 5 levels, not 20).
"""

import numpy as np

from rltrain.state import Array

_FAN_OUT = 16
_SHIFT = 4


class _Tree:
    """Levels from the leaves to one row of at most 16 nodes; every parent is `reduce` of its children."""

    def __init__(self, capacity: int, reduce: np.ufunc, empty: float) -> None:
        padded = 1 << max(capacity - 1, 0).bit_length()
        self._reduce = reduce
        self._levels = [np.full(padded, empty, np.float64)]
        while self._levels[-1].size > _FAN_OUT:
            self._levels.append(np.full(-(-self._levels[-1].size // _FAN_OUT), empty, np.float64))

    @property
    def leaves(self) -> Array:
        """The leaves, float64 (capacity padded to a power of two,); not to be written."""
        return self._levels[0]

    @property
    def root(self) -> float:
        """`reduce` over all leaves."""
        return float(self._reduce.reduce(self._levels[-1]))

    def set(self, indexes: Array, values: Array | float) -> None:
        """Write leaves; of an index given twice the last value stays. Parents are recomputed, so nothing drifts."""
        self._levels[0][indexes] = values
        for children, parents in zip(self._levels, self._levels[1:], strict=False):
            indexes = indexes >> _SHIFT
            parents[indexes] = self._reduce.reduce(children.reshape(-1, _FAN_OUT).take(indexes, axis=0), axis=1)


class MinTree(_Tree):
    """Minimum of the leaves; an empty leaf is infinity."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.minimum, np.inf)


class SumTree(_Tree):
    """Sum of the leaves, with search by prefix sum; an empty leaf is 0."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.add, 0.0)

    def find(self, mass: Array, filled: int) -> Array:
        """Leaf i for each mass with sum(leaves[:i]) <= mass < sum(leaves[:i + 1]).

        Args:
            mass: float64 (n,), in [0, root].
            filled: leaves in use; a mass that rounding carries past their sum gets the last of them.

        Returns:
            int64 (n,), all below `filled`.
        """
        top = self._levels[-1]
        sums = top.cumsum()
        node = np.minimum(sums.searchsorted(mass, side="right"), top.size - 1)
        mass = mass - (sums[node] - top[node])
        first = np.arange(mass.size) * _FAN_OUT
        for level in self._levels[-2::-1]:
            rows = level.reshape(-1, _FAN_OUT).take(node, axis=0)
            sums = np.add.accumulate(rows, axis=1)
            beyond = sums > mass[:, None]
            beyond[:, -1] = True  # where rounding has carried a mass past them all
            child = beyond.argmax(axis=1)
            at = first + child
            mass = mass - (sums.take(at) - rows.take(at))
            node = node * _FAN_OUT + child
        return np.minimum(node, filled - 1)
