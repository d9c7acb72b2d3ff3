"""Ledger that holds trained steps to a fixed ratio of sampled ones."""

from typing import Final, Protocol

from rltrain.state import State

_BATCHES_BEHIND: Final = 2


class Ledger(Protocol):
    """What says whether to sample or to train."""

    @property
    def together(self) -> int:
        """Train batches to ask for at once: each call costs as much as an update of a small network does."""

    @property
    def due(self) -> bool:
        """Whether a train batch may be taken."""

    @property
    def behind(self) -> bool:
        """Whether training has so much to make up for that sampling must wait."""

    def earn(self, steps: int) -> None:
        """Steps were stored in a warm buffer."""

    def spend(self, steps: int) -> None:
        """A train batch of so many steps was taken; a negative number of them was lost."""


class FreeRunning:
    """Of a plan that samples and trains as fast as it can."""

    together = 8
    due = True
    behind = False

    def earn(self, steps: int) -> None: ...

    def spend(self, steps: int) -> None: ...


class IntensityLedger:
    """Credit earned by storing and spent by training.

    Args:
        intensity: trained steps for each sampled one; None pays for one train batch with each store, however large.
        train_batch_size: transitions that a train batch costs.
    """

    together = 1
    """More might cost more than there is."""

    def __init__(self, intensity: float | None, train_batch_size: int) -> None:
        self._intensity = intensity
        self._price = train_batch_size
        self.credit = 0.0

    def earn(self, steps: int) -> None:
        """Steps were stored in a warm buffer."""
        if self._intensity is None:
            self.credit = float(self._price)  # not more: a store that went unanswered isn't made up for
        else:
            self.credit += steps * self._intensity

    @property
    def due(self) -> bool:
        """Whether the credit covers a train batch."""
        return self.credit >= self._price

    @property
    def behind(self) -> bool:
        """Whether it covers more than that, which happens where training runs beside sampling and is slower."""
        return self.credit >= _BATCHES_BEHIND * self._price

    def spend(self, steps: int) -> None:
        """A train batch of so many steps was taken; a negative number of them was lost."""
        self.credit -= steps

    def get_state(self) -> State:
        return {"credit": self.credit}

    def set_state(self, state: State) -> None:
        self.credit = float(state["credit"])
