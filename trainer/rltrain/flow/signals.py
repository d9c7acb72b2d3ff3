"""What a pull may return instead of an item."""

from enum import Enum
from typing import Final, Literal


class Signal(Enum):
    """A pull that brought no item."""

    NOT_READY = "not ready"
    """Nothing could be done; pulling again before something arrives is a waste."""
    PROGRESS = "progress"
    """Something was done, but there is nothing to hand out yet; pull again."""


NOT_READY: Final[Literal[Signal.NOT_READY]] = Signal.NOT_READY
PROGRESS: Final[Literal[Signal.PROGRESS]] = Signal.PROGRESS
