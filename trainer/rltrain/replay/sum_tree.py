"""PriorityTree: sums and minima over float64 leaves, updated and searched a level at a time.

A level is a handful of NumPy calls, whose number rather than their width is what a batch costs. So a node has 32
children rather than 2, and the last level is one row of up to 2,048 nodes: 1M leaves have two levels above them.
"""

import numpy as np

from rltrain.state import Array

_FAN_OUT = 32
_SHIFT = 5
_TOP = 2048
_RUNNING_SUMS = np.triu(np.ones((_FAN_OUT, _FAN_OUT)))
"""Row times this: the sums of its first 1, 2, … values. A third of the time that adding up takes, value by value."""


class PriorityTree:
    """Leaves with values above 0, or 0 where there is none.

    Attributes:
        leaves: float64 (capacity padded to a power of two,); not to be written.
    """

    def __init__(self, capacity: int) -> None:
        self.leaves = np.zeros(max(1 << max(capacity - 1, 0).bit_length(), _FAN_OUT))
        self._sums = [self.leaves]
        self._mins = [self.leaves]  # of which the empty ones don't count
        while len(self._sums) == 1 or self._sums[-1].size > _TOP:
            parents = -(-self._sums[-1].size // _FAN_OUT)
            self._sums.append(np.zeros(parents))
            self._mins.append(np.full(parents, np.inf))

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(np.add.reduce(self._sums[-1]))

    @property
    def least(self) -> float:
        """The smallest value; infinity where there is none."""
        return float(np.minimum.reduce(self._mins[-1]))

    def set(self, indexes: Array, values: Array | float) -> None:
        """Write leaves; of an index given twice the last value stays. Parents are recomputed, so nothing drifts."""
        self.leaves[indexes] = values
        for level in range(1, len(self._sums)):
            sums, mins = self._sums[level], self._mins[level]
            indexes = indexes >> _SHIFT if indexes.size < sums.size else np.arange(sums.size)
            rows = self._sums[level - 1].reshape(-1, _FAN_OUT).take(indexes, axis=0)
            sums[indexes] = np.add.reduce(rows, axis=1)
            if level == 1:
                rows[rows == 0] = np.inf
            else:
                rows = self._mins[level - 1].reshape(-1, _FAN_OUT).take(indexes, axis=0)
            mins[indexes] = np.minimum.reduce(rows, axis=1)

    def find(self, mass: Array, filled: int) -> Array:
        """Leaf i for each mass with sum(leaves[:i]) <= mass < sum(leaves[:i + 1]).

        Args:
            mass: float64 (n,), in [0, total].
            filled: leaves in use; a mass that rounding carries past their sum gets the last of them.

        Returns:
            int64 (n,), all below `filled`.
        """
        top = self._sums[-1]
        sums = top.cumsum()
        node = np.minimum(sums.searchsorted(mass, side="right"), top.size - 1)
        mass = mass - (sums[node] - top[node])
        first = np.arange(0, mass.size * _FAN_OUT, _FAN_OUT)
        for level in self._sums[-2::-1]:
            rows = level.reshape(-1, _FAN_OUT).take(node, axis=0)
            sums = rows @ _RUNNING_SUMS
            beyond = sums > mass[:, None]
            beyond[:, -1] = True  # where rounding has carried a mass past them all
            child = beyond.argmax(axis=1)
            node = node * _FAN_OUT + child
            if level is not self.leaves:
                at = first + child
                mass = mass - (sums.take(at) - rows.take(at))
        return np.minimum(node, filled - 1)
