"""What Ape-X's plans are given beside the others', and what they report."""

from collections.abc import Container
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

from rltrain.flow import ShardFailure
from rltrain.ops.context import PlanContext, Workers
from rltrain.ops.learner import LearnerHandle
from rltrain.ops.report import Result
from rltrain.ops.shards import ReplayShards
from rltrain.replay.shard import ReplayShard
from rltrain.rollout.worker import RolloutWorker

C = TypeVar("C")


@dataclass(kw_only=True)
class ApexContext(PlanContext[C], Generic[C]):
    """A context with a sharded replay buffer and a learner beside the driver."""

    shards: ReplayShards
    learner: LearnerHandle


class LowestEpsilons(Container[int]):
    """Indexes of the third of the workers, rounded up, that explore least: theirs is how well the policy does.

    Args:
        workers: however many are wanted at the time.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def __contains__(self, index: object) -> bool:
        return index in lowest_third(self._workers.wanted)


def lowest_third(workers: int) -> range:
    """Of worker 1 to `workers`, who explore the less the higher; 0 is the driver's own, without any."""
    return range(workers - -(-workers // 3) + 1, workers + 1) if workers else range(1)


class AddApexMetrics:
    """Add to each result how workers explore, how full the learner's queue is, and what the shards hold.

    Args:
        debug: tell of every shard rather than of the first.
    """

    def __init__(self, workers: Workers, shards: ReplayShards, learner: LearnerHandle, *, debug: bool) -> None:
        self._workers = workers
        self._shards = shards
        self._learner = learner
        self._debug = debug

    def __call__(self, result: Result) -> Result:
        info = {
            **result.info,
            "exploration_infos": self._exploration(),
            "learner_queue": self._learner.sizes.stats(),
            **self._replay(),
        }
        return replace(result, info=info)

    def _exploration(self) -> list[dict[str, float]]:
        """Of the driver's own policy and of each worker there is, asked beside what it is doing."""
        infos = [self._workers.local.policy.exploration_state()]
        for future in [actor.control(_exploration_of) for actor in self._workers.actors()]:
            try:
                infos.append(self._workers.backend.result(future))
            except ShardFailure as failure:
                self._workers.failed([failure])
        return infos

    def _replay(self) -> dict[str, Any]:
        stats: dict[str, Any] = {}
        for actor in self._shards.actors():
            if actor.index > 1 and not self._debug:
                break
            try:
                of_shard = self._shards.backend.result(actor.apply(ReplayShard.stats))
                stats[f"replay_shard_{actor.index - 1}"] = asdict(of_shard)
            except ShardFailure as failure:
                self._shards.failed([failure])
        return stats


def _exploration_of(worker: RolloutWorker) -> dict[str, float]:
    return worker.policy.exploration_state()
