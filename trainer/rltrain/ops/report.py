"""StandardMetricsReporting: from train items to results."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rltrain.api.config import PlanConfig
from rltrain.flow import PROGRESS, LocalIterator, MetricsContext, Signal, get_metrics
from rltrain.flow.metrics import EPISODES, REPORTS, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.ops.context import Workers


@dataclass(frozen=True)
class Result:
    """One report. Times are seconds except `timers_ms`; counts are over all attempts.

    Attributes:
        steps_per_second: env steps sampled a second since the last report; trained ones where nothing is sampled.
        custom_metrics: the user's own, of the window's episodes.
        added: what the user's callback has put into the report, beside the values here.
        evaluation: one that has ended since the last report, with the steps at which its weights were taken.
        resumed: in the first report after a resume: the checkpoint, its steps, and hashes of what was restored.
    """

    env_steps: int
    trained_steps: int
    episodes: int
    episode_return_mean: float | None
    episode_length_mean: float | None
    num_healthy_workers: int
    num_wanted_workers: int
    steps_per_second: float | None
    time_s: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    timers_ms: dict[str, float] = field(default_factory=dict)
    throughputs: dict[str, float] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    exploration: dict[str, float] = field(default_factory=dict)
    rank_hashes: list[str] | None = None
    custom_metrics: dict[str, float] | None = None
    evaluation: dict[str, Any] | None = None
    resumed: dict[str, Any] | None = None
    added: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """See `MetricsContext.steps`."""
        return self.env_steps or self.trained_steps

    def to_json(self) -> dict[str, Any]:
        """As a line of results.jsonl; what isn't there is left out."""
        told = asdict(self)
        added: dict[str, Any] = told.pop("added")
        return {key: value for key, value in told.items() if value is not None or key.startswith("episode")} | added


def StandardMetricsReporting(  # noqa: N802 - operators of the plan language are written like nouns
    train_op: LocalIterator[Any], workers: Workers, config: PlanConfig, *, by_steps_trained: bool = False
) -> LocalIterator[Result]:
    """A result once `timesteps_per_iteration` steps and `min_time_s_per_reporting` seconds have passed.

    Args:
        by_steps_trained: count trained steps rather than sampled ones.
    """
    return train_op.for_each(_Reporter(workers, config, STEPS_TRAINED if by_steps_trained else STEPS_SAMPLED))


class _Reporter:
    def __init__(self, workers: Workers, config: PlanConfig, counter: str) -> None:
        self._workers = workers
        self._config = config
        self._counter = counter

    def __call__(self, item: object) -> Result | Signal:
        metrics = get_metrics()
        steps = metrics.counters[self._counter] - metrics.counters["last_report_step"]
        elapsed = metrics.clock() - metrics.marks.setdefault("last_report", 0.0)
        if steps < self._config.timesteps_per_iteration or elapsed < self._config.min_time_s_per_reporting:
            return PROGRESS
        metrics.counters[REPORTS] += 1
        metrics.marks["last_report"] = metrics.clock()
        metrics.counters["last_report_step"] = metrics.counters[self._counter]
        return summarise(self._workers, steps / elapsed if elapsed > 0 else None)


def summarise(workers: Workers, steps_per_second: float | None) -> Result:
    """Everything that the metrics context knows, as a result."""
    metrics = get_metrics()
    lengths = metrics.episode_lengths
    return Result(
        env_steps=metrics.counters[STEPS_SAMPLED],
        trained_steps=metrics.counters[STEPS_TRAINED],
        episodes=metrics.counters[EPISODES],
        episode_return_mean=metrics.episode_return_mean,
        episode_length_mean=sum(lengths) / len(lengths) if lengths else None,
        num_healthy_workers=len(workers.actors()),
        num_wanted_workers=workers.wanted,
        time_s=metrics.clock(),
        steps_per_second=steps_per_second,
        counters=dict(metrics.counters),
        timers_ms={name: timer.mean_ms for name, timer in metrics.timers.items()},
        throughputs={name: rate for name, timer in metrics.timers.items() if (rate := timer.throughput) is not None},
        info={**{name: value for name, value in metrics.info.items() if name != "rank_hashes"}, **_by_policy(metrics)},
        exploration=workers.local.policy.exploration_state(),
        custom_metrics=metrics.custom_metrics or None,
        rank_hashes=metrics.info.get("rank_hashes"),
    )


def _by_policy(metrics: MetricsContext) -> dict[str, dict[str, float]]:
    """The policies' mean returns, where there are several agents."""
    means = {policy: sum(returns) / len(returns) for policy, returns in metrics.policy_returns.items()}
    return {"policy_reward_mean": means} if means else {}
