"""OutcomeSoFar: the outcome of a run that can't tell it any more, or that never began."""

from typing import TYPE_CHECKING, Literal

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.api.status import CheckpointStatus, Progress
from rltrain.runtime.result import RunResult, StopReason

if TYPE_CHECKING:
    from rltrain.ops import Result


class OutcomeSoFar:
    """An observer that remembers the newest counts. Light, for a manifest may be refused before anything is loaded."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._checkpoint: CheckpointStatus | None = None
        self._time_s = 0.0
        self._outcome: RunResult | None = None

    def progress(self, progress: Progress) -> None:
        self._progress = progress

    def result(self, result: "Result") -> None:
        self._time_s = result.time_s

    def saved(self, checkpoint: CheckpointStatus) -> None:
        self._checkpoint = checkpoint

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
        progress = self._progress
        return RunResult(
            state=state,
            stop_reason=stop,
            env_steps=progress.env_steps if progress else 0,
            trained_steps=progress.trained_steps if progress else 0,
            episode_return_mean=progress.episode_return_mean if progress else None,
            evaluation_return_mean=progress.evaluation_return_mean if progress else None,
            time_s=self._time_s,
            checkpoint=self._checkpoint.path if self._checkpoint else None,
            best_checkpoint=self._checkpoint.best_path if self._checkpoint else None,
            message=message,
            reason=reason,
            exit_code=code,
        )
