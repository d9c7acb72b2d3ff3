"""RunResult: how a run ended."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from rltrain.api import names

State = Literal["Succeeded", "Failed", "Interrupted"]
StopReason = Literal[
    "episode_return_mean",
    "evaluation_return_mean",
    "env_steps",
    "trained_steps",
    "time_s",
    "deadline",
    "interrupted",
    "terminated",
    "error",
]


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run.

    Attributes:
        stop_reason: the criterion that was reached first, or what else ended it.
        time_s: seconds of training, over all attempts.
        checkpoint: path of the newest whole checkpoint.
        evaluation_return_mean: of the newest evaluation.
        best_checkpoint: path of the best one, where it is kept.
        message: what went wrong and what to do, where something did.
        reason: CamelCase word for programs.
    """

    state: State
    stop_reason: StopReason
    env_steps: int
    trained_steps: int
    episode_return_mean: float | None
    time_s: float
    checkpoint: str | None
    evaluation_return_mean: float | None = None
    best_checkpoint: str | None = None
    message: str | None = None
    reason: str = "StopCriterionReached"
    exit_code: int = names.EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """For `--json` and finished.json."""
        return asdict(self)
