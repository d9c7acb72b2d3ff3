"""When a run is over, and how long until then. Pure."""

from typing import NamedTuple

from rltrain.api.job import Stop
from rltrain.api.run_policy import RunPolicy
from rltrain.runtime.result import StopReason


class Standing(NamedTuple):
    """How far a run is, over all attempts.

    Attributes:
        time_s: seconds of training.
        steps_per_second: at present; trained ones where nothing is sampled.
        smooth: the mean return is that of a whole smoothing window.
    """

    env_steps: int
    time_s: float
    episode_return_mean: float | None
    steps_per_second: float | None = None
    trained_steps: int = 0
    evaluation_return_mean: float | None = None
    smooth: bool = True


def reached(stop: Stop, policy: RunPolicy, now: Standing) -> StopReason | None:
    """The first criterion that holds; the return before the budgets, a used-up budget before the deadline."""
    if (
        stop.episode_return_mean is not None
        and now.smooth
        and now.episode_return_mean is not None
        and now.episode_return_mean >= stop.episode_return_mean
    ):
        return "episode_return_mean"
    if (
        stop.evaluation_return_mean is not None
        and now.evaluation_return_mean is not None
        and now.evaluation_return_mean >= stop.evaluation_return_mean
    ):
        return "evaluation_return_mean"
    if stop.env_steps is not None and now.env_steps >= stop.env_steps:
        return "env_steps"
    if stop.trained_steps is not None and now.trained_steps >= stop.trained_steps:
        return "trained_steps"
    if stop.time_seconds is not None and now.time_s >= stop.time_seconds:
        return "time_s"
    if policy.active_deadline_seconds is not None and now.time_s >= policy.active_deadline_seconds:
        return "deadline"
    return None


def unjudged(stop: Stop, episodes: int, window: int) -> str | None:
    """What to say at the end of a run whose mean return was never compared with what it was to reach.

    Args:
        episodes: in the smoothing window.
        window: how many there must be.
    """
    if stop.episode_return_mean is None or episodes >= window:
        return None
    return (
        f"stop.episodeReturnMean was never compared with anything: {episodes:,} of the {window:,} episodes have ended "
        "that it is about; raise the run's budget, or lower config.metrics_num_episodes_for_smoothing"
    )


def eta_seconds(stop: Stop, now: Standing) -> float | None:
    """Seconds to the nearer of the step and time criteria; None where neither can be told."""
    left: list[float] = []
    if stop.env_steps is not None and now.steps_per_second:
        left.append((stop.env_steps - now.env_steps) / now.steps_per_second)
    if stop.trained_steps is not None and now.steps_per_second and not now.env_steps:
        left.append((stop.trained_steps - now.trained_steps) / now.steps_per_second)
    if stop.time_seconds is not None:
        left.append(stop.time_seconds - now.time_s)
    return max(0.0, min(left)) if left else None
