"""Whether more or fewer rollout workers suit a learner. Pure."""

from dataclasses import dataclass
from typing import Final

WAITING: Final = 0.2
"""Share of its time that a learner beside the driver may wait for samples before it gets another worker."""
BUSY: Final = 0.6
"""Workers that sample less are held up by something else than their number."""
SPARE: Final = 0.9
"""Share of its time that each of one worker fewer may have to do."""
MOSTLY_SAMPLING: Final = 0.5
HARDLY_SAMPLING: Final = 0.2


@dataclass(frozen=True)
class Load:
    """Shares of some time.

    Attributes:
        waiting: in which the learner had nothing to learn from.
        sampling: in which a worker sampled, on average over workers.
    """

    waiting: float
    sampling: float

    def __str__(self) -> str:
        return f"the learner waits for {self.waiting:.0%} of the time, a worker samples for {self.sampling:.0%}"


def better(load: Load, workers: int, *, alternating: bool) -> int:
    """How many workers more to have, of -1, 0 and 1.

    What it takes to add one and what it takes to take one away are so far apart that neither undoes the other.

    Args:
        alternating: the plan samples and learns in turn, so that the learner waits while workers sample; one worker
            more makes rounds larger, not faster.
    """
    if alternating:
        return int(load.sampling > MOSTLY_SAMPLING) - int(load.sampling < HARDLY_SAMPLING)
    if load.waiting > WAITING:
        return int(load.sampling > BUSY)
    return -int(load.sampling * workers < SPARE * (workers - 1))
