"""Seconds of training, over all attempts."""

import time
from typing import Final

from rltrain.flow.metrics import MetricsContext

STEPS_PER_SECOND: Final = 1000
"""At which the serial mode's clock runs."""


class WallClock:
    """Real time since training began, added to that of earlier attempts."""

    def __init__(self) -> None:
        self._base = 0.0
        self._started: float | None = None

    def __call__(self) -> float:
        return self._base + (time.monotonic() - self._started if self._started is not None else 0.0)

    def begin(self, base: float) -> None:
        """Training begins, `base` seconds of it having passed in earlier attempts."""
        self._base, self._started = base, time.monotonic()


class StepClock:
    """Steps as time, so that a serial run does the same at the same steps every time."""

    def __init__(self, metrics: MetricsContext) -> None:
        self._metrics = metrics

    def __call__(self) -> float:
        return self._metrics.steps / STEPS_PER_SECOND

    def begin(self, base: float) -> None:
        """Nothing to do: the steps are restored."""
