"""Evaluation between reports, for plans that don't sample."""

from dataclasses import replace

import numpy as np

from rltrain.flow import get_metrics
from rltrain.ops.context import Workers
from rltrain.ops.report import Result
from rltrain.rollout.evaluation import evaluate


class EvaluateInEnvironment:
    """Play greedy episodes with the driver's policy, other ones each time; their mean is the return that is reported.

    Args:
        interval: reports between two evaluations; 0 for none.
        episodes: of an evaluation.
        seed: of the episodes.
    """

    def __init__(self, workers: Workers, interval: int, episodes: int, seed: int) -> None:
        self._workers = workers
        self._interval = interval
        self._episodes = episodes
        self._seed = seed

    def __call__(self, result: Result) -> Result:
        metrics = get_metrics()
        metrics.counters["num_reports"] += 1
        if not self._interval or metrics.counters["num_reports"] % self._interval:
            return result
        metrics.counters["num_evaluations"] += 1
        worker = self._workers.local
        seed = (self._seed + metrics.counters["num_evaluations"]) % (1 << 32)
        with metrics.timer("evaluate")():
            records = list(evaluate(worker.policy, worker.spec.env, self._episodes, seed))
        returns = np.array([record.return_ for record in records])
        metrics.episode_returns.clear()
        metrics.episode_lengths.clear()
        for record in records:
            metrics.add_episode(record.return_, record.length)
        scores = {
            "episode_return_mean": float(returns.mean()),
            "episode_return_std": float(returns.std()),
            "episode_return_min": float(returns.min()),
            "episode_return_max": float(returns.max()),
            "episodes": len(records),
        }
        lengths = [record.length for record in records]
        return replace(
            result,
            episodes=metrics.counters["num_episodes"],
            episode_return_mean=scores["episode_return_mean"],
            episode_length_mean=sum(lengths) / len(lengths),
            info={**result.info, "evaluation": scores},
        )
