"""TensorBoard's event files."""

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tensorboardX.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]  # has no annotations
from tensorboardX.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboardX.record_writer import RecordWriter  # type: ignore[import-untyped]
from tensorboardX.summary import scalar  # type: ignore[import-untyped]

from rltrain.ops import Result
from rltrain.runtime.observers import Recorder
from rltrain.runtime.result import RunResult

SYNC_SECONDS: Final = 10.0
"""Between two waits for the disk."""


class TensorBoard(Recorder):
    """Event files in the run directory, written by the driver itself.

    tensorboardX's own writer hands events to a thread through a queue that is soon full: where the disk is, the thread
    dies, and whoever reports next waits for ever.

    Args:
        folder: the run directory.
        resumed_at: steps that the run goes on from.
    """

    def __init__(self, folder: Path, resumed_at: int | None) -> None:
        super().__init__("curves", folder)
        self._file: _EventFile | None = None
        self._files = 0
        # Steps after the checkpoint come again: without the purge their curves would run back and forth.
        self._purge = None if resumed_at is None else resumed_at + 1

    def write(self, result: Result) -> None:
        values: dict[str, object] = {
            "episode_return_mean": result.episode_return_mean,
            "episode_length_mean": result.episode_length_mean,
            "steps_per_second": result.steps_per_second,
            "num_healthy_workers": result.num_healthy_workers,
            "num_wanted_workers": result.num_wanted_workers,
            "trained_steps": result.trained_steps,
            **{f"exploration/{name}": value for name, value in result.exploration.items()},
            **{f"learner/{name}": value for name, value in result.info.get("learner", {}).items()},
            **{f"custom_metrics/{name}": value for name, value in (result.custom_metrics or {}).items()},
            **{f"added/{name}": value for name, value in result.added.items()},
            **{f"timers_ms/{name}": value for name, value in result.timers_ms.items()},
        }
        points = [(result.steps, values)]
        if evaluation := result.evaluation:
            # Where its weights are from, and not where training has come to meanwhile.
            steps = int(evaluation["env_steps"] or evaluation["trained_steps"])
            points.append((steps, {f"evaluation/{name}": value for name, value in evaluation.items()}))
        try:
            self._write(points)
        except OSError:
            # A record may be half there: what comes next belongs into another file.
            self._leave()
            raise

    def finished(self, outcome: RunResult) -> None:
        self._leave()

    def _write(self, points: list[tuple[int, dict[str, object]]]) -> None:
        if self._file is None:
            self._files += 1
            name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{self._files}"
            self._file = _EventFile(self._where / name)
        events = [Event(step=steps, summary=_summary(values)) for steps, values in points]
        if self._purge is not None:
            events.insert(0, Event(step=self._purge, session_log=SessionLog(status=SessionLog.START)))
        self._file.write(events)
        self._purge = None

    def _leave(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _EventFile:
    """A file of events, which is gone in the end if nothing whole could be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = RecordWriter(str(path))
        self._synced_at: float | None = None
        self._add(Event(file_version="brain.Event:2"))

    def write(self, events: list[Any]) -> None:
        """All of them, to the disk at once or with later ones. Raises OSError."""
        for event in events:
            self._add(event)
        if self._synced_at is None or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self._writer.flush()
            self._synced_at = time.monotonic()

    def close(self) -> None:
        with suppress(OSError):
            self._writer.close()
        if self._synced_at is None:
            with suppress(OSError):
                self._path.unlink()

    def _add(self, event: Any) -> None:
        event.wall_time = time.time()
        self._writer.write(event.SerializeToString())


def _summary(values: Mapping[str, object]) -> Any:
    """A point of each curve, for all that is a number."""
    points = [scalar(name, value).value[0] for name, value in values.items() if isinstance(value, int | float)]
    return Summary(value=points)
