"""OutcomeSoFar: the outcome of a run that can't tell it any more, or that never began."""

from typing import TYPE_CHECKING, Literal

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.api.status import CheckpointStatus, Progress
from rltrain.runtime.result import RunResult, StopReason

if TYPE_CHECKING:
    from rltrain.ops import Result
    from rltrain.runtime.checkpoint import Checkpoint, Summary


class OutcomeSoFar:
    """An observer that remembers the newest counts. Light, for a manifest may be refused before anything is loaded.

    Args:
        checkpoint: what the run goes on from.
    """

    def __init__(self, checkpoint: "Checkpoint | None" = None) -> None:
        self._counts: Summary | Progress | Result | None = checkpoint.summary if checkpoint else None
        self._checkpoint = str(checkpoint.path) if checkpoint else None
        self._evaluated: float | None = None
        self._best: str | None = None
        self._time_s = checkpoint.summary.time_s if checkpoint else 0.0
        self._outcome: RunResult | None = None

    def progress(self, progress: Progress) -> None:
        self._counts, self._evaluated = progress, progress.evaluation_return_mean

    def result(self, result: "Result") -> None:
        self._counts, self._time_s = result, result.time_s

    def saved(self, checkpoint: CheckpointStatus) -> None:
        self._checkpoint, self._best = checkpoint.path, checkpoint.best_path

    def finished(self, outcome: RunResult) -> None:
        self._outcome = outcome

    def failed(self, error: RltrainError) -> RunResult:
        """The run's own outcome where it has one."""
        return self._outcome or self._made("Failed", "error", str(error), error.reason, error.exit_code)

    def interrupted(self) -> RunResult:
        """Of a process that leaves at once."""
        message = "left at once, without saving"
        return self._made("Interrupted", "interrupted", message, "Interrupted", names.EXIT_INTERRUPTED)

    def _made(
        self, state: Literal["Failed", "Interrupted"], stop: StopReason, message: str, reason: str, code: int
    ) -> RunResult:
        counts = self._counts
        return RunResult(
            state=state,
            stop_reason=stop,
            env_steps=counts.env_steps if counts else 0,
            trained_steps=counts.trained_steps if counts else 0,
            episode_return_mean=counts.episode_return_mean if counts else None,
            evaluation_return_mean=self._evaluated,
            time_s=self._time_s,
            checkpoint=self._checkpoint,
            best_checkpoint=self._best,
            message=message,
            reason=reason,
            exit_code=code,
        )
