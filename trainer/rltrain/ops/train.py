"""Learning in the driver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from rltrain.api.errors import InvalidManifest, Problem, TrainingFailed
from rltrain.flow import get_metrics
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED, STEPS_TRAINED_THIS_ITER
from rltrain.ops.context import Workers
from rltrain.policies.base import LearnInfo
from rltrain.rollout.multi_agent_batch import AnyBatch
from rltrain.user_code import load

T = TypeVar("T")


@dataclass(frozen=True)
class Trained:
    """A batch and what learning from it brought."""

    batch: AnyBatch
    info: LearnInfo


class TrainOneStep:
    """One update of the driver's policy; its weights are then published to the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def __call__(self, batch: AnyBatch) -> Trained:
        metrics = get_metrics()
        policy = self._workers.local.policy
        policy.set_global_step(metrics.steps)
        timer = metrics.timer("learn")
        with timer():
            info = policy.learn_on_batch(batch)
        timer.push_units(batch.steps)
        self._workers.publish_weights()
        metrics.counters[STEPS_TRAINED_THIS_ITER] = batch.steps
        metrics.counters[STEPS_TRAINED] += batch.steps
        metrics.info["learner"] = info.stats
        return Trained(batch, info)


@runtime_checkable
class HasTarget(Protocol):
    """A learner elsewhere, which has the target network."""

    def update_target(self) -> None: ...


class UpdateTargetNetwork:
    """Copy the network to the target once so many steps have passed.

    Args:
        target: whose target network: the driver's own policy's, or a learner's.
        frequency: steps between two copies.
        by_steps_trained: count trained steps rather than sampled ones.
    """

    def __init__(self, target: "Workers | HasTarget", frequency: int, *, by_steps_trained: bool = False) -> None:
        self._target = target
        self._frequency = frequency
        self._counter = STEPS_TRAINED if by_steps_trained else STEPS_SAMPLED

    def __call__(self, trained: T) -> T:
        counters = get_metrics().counters
        if counters[self._counter] - counters["last_target_update_step"] >= self._frequency:
            owner = self._target if isinstance(self._target, HasTarget) else self._target.local.policy
            owner.update_target()
            counters["num_target_updates"] += 1
            counters["last_target_update_step"] = counters[self._counter]
        return trained


class BeforeLearnOnBatch:
    """The user's own function over each train batch.

    Args:
        reference: "package.module:function", or None for no change.

    Raises:
        InvalidManifest: there is no such function.
    """

    def __init__(self, reference: str | None) -> None:
        self._function = None if reference is None else _load(reference)

    def __call__(self, batch: AnyBatch) -> AnyBatch:
        if self._function is None:
            return batch
        changed = self._function(batch)
        if not isinstance(changed, type(batch)):
            wanted, given = type(batch).__name__, type(changed).__name__
            raise TrainingFailed(f"before_learn_on_batch must return a {wanted}, not {given}")
        return changed


def _load(reference: str) -> Callable[[AnyBatch], Any]:
    field = "spec.config.before_learn_on_batch"
    function: Callable[[AnyBatch], Any] = load(reference, field, "function")
    if not callable(function):
        raise InvalidManifest([Problem(field, f"{reference!r} is not a function")])
    return function
