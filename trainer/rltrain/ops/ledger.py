"""Ledger that holds trained steps to a fixed ratio of sampled ones."""

from rltrain.state import State


class IntensityLedger:
    """Credit earned by storing and spent by training.

    Args:
        intensity: trained steps for each sampled one; None pays for one train batch with each store, however large.
        train_batch_size: transitions that a train batch costs.
    """

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

    def spend(self, steps: int) -> None:
        """A train batch of so many steps was taken."""
        self.credit -= steps

    def get_state(self) -> State:
        return {"credit": self.credit}

    def set_state(self, state: State) -> None:
        self.credit = float(state["credit"])
