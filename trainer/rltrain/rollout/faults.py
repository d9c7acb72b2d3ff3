"""Environments that fail: what is known of it, and how much of it a worker bears."""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, RltrainError, TooManyRestarts
from rltrain.state import Array


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure of an environment, which must be made again before it is stepped again.

    Attributes:
        kind: the exception's name, or what was not as it must be; each kind is warned of once.
        message: a sentence that names worker, environment, step and cause.
        env: index of the environment within its worker.
    """

    kind: str
    message: str
    env: int = 0

    @classmethod
    def of(cls, error: RltrainError, env: int) -> "Fault":
        """What an environment has raised, or why it can't be made."""
        kind = error.kind if isinstance(error, EnvironmentFailed) else ""
        return cls(kind or type(error.__cause__ or error).__name__, str(error), env)


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What went wrong while a fragment was sampled.

    Attributes:
        restarts: the faults, each of which had environments made again.
        episodes_dropped: unfinished episodes whose last steps reach no batch.
    """

    restarts: tuple[Fault, ...] = ()
    episodes_dropped: int = 0


_LARGEST: Final = float(np.finfo(np.float32).max)
NO_FAULTS: Final = FaultReport()


class Tolerance:
    """How often a worker's environments may fail, in a window of its steps; none is borne by default.

    Args:
        restarts: most faults of any `window` steps.
        window: environment steps.
    """

    def __init__(self, restarts: int = 0, window: int = 1) -> None:
        self._restarts, self._window = restarts, window
        self.seen: deque[int] = deque()
        """Steps of the worker at which there were faults, those of the window."""

    @classmethod
    def of(cls, spec: EnvSpec) -> "Tolerance":
        """What a manifest says."""
        return cls(spec.max_restarts, spec.restart_window_steps)

    def bear(self, fault: Fault, step: int) -> None:
        """Count a fault at a step of the worker's.

        Raises:
            TooManyRestarts: it is one too many.
        """
        self.seen.append(step)
        while self.seen[0] <= step - self._window:
            self.seen.popleft()
        if len(self.seen) > self._restarts:
            so_often = (
                f"; with this, environments of its worker have failed {len(self.seen)} times within {self._window:,} "
                f"steps, and env.maxRestarts allows {self._restarts}"
            )
            raise TooManyRestarts(fault.message + (so_often if self._restarts else ""))


def all_finite(array: Array) -> bool:
    """Whether no number is NaN, or infinite as the float32 that it becomes; arrays of integers have none."""
    if array.dtype.kind != "f":
        return True
    # A sum of squares is a quarter of the price, and small enough only if all are; any other is looked at again.
    return float(np.vdot(array, array)) <= _LARGEST**2 or bool((np.abs(array) <= _LARGEST).all())


def not_finite(**arrays: Array) -> list[tuple[int, str]]:
    """Rows in which a number isn't finite, each with the name of the array that has it."""
    found: dict[int, str] = {}
    for name, array in arrays.items():
        if not all_finite(array):
            rows = (np.abs(array) <= _LARGEST).reshape(len(array), -1).all(axis=1)
            found |= dict.fromkeys(np.flatnonzero(~rows).tolist(), name)
    return sorted(found.items())
