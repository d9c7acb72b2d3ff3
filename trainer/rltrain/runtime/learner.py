"""The learner as an actor: a thread of the driver, or a process on a machine of its own."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from rltrain.api.errors import RltrainError, TrainingFailed
from rltrain.flow import (
    NOT_READY,
    Actor,
    ActorFailed,
    Backend,
    Future,
    ShardFailure,
    Signal,
    ValueLost,
    get_metrics,
)
from rltrain.flow.metrics import STEPS_SAMPLED
from rltrain.models.spaces import Space
from rltrain.ops.learner import Learner, LostBatch, QueueSizes, Update
from rltrain.ops.shards import Replayed
from rltrain.ops.train import BeforeLearnOnBatch
from rltrain.policies.native import use_native_code
from rltrain.policies.registry import make_policy
from rltrain.replay.shard import Sampled
from rltrain.rollout.batch import Batch
from rltrain.rollout.worker import WorkerSpec
from rltrain.runtime.crew import Crew
from rltrain.state import Array, State

log = logging.getLogger(__name__)

IN_QUEUE: Final = 16
"""Batches that were given to the learner and not taken out again."""
COPY_SECONDS: Final = 10.0
"""Between two copies of a remote learner's state into the driver."""


@dataclass(frozen=True)
class MakeLearner:
    """Makes the learner where its actor lives.

    Attributes:
        spec: of the workers, whose policy is the learner's too.
        device: torch device.
    """

    spec: WorkerSpec
    observation_space: Space
    action_space: Space
    before_learn_on_batch: str | None
    device: str

    def __call__(self, index: int, incarnation: int) -> Learner:
        spec = self.spec
        policy = make_policy(
            spec.plan,
            spec.config,
            self.observation_space,
            self.action_space,
            spec.seed,
            device=self.device,
            workers=spec.num_workers,
        )
        use_native_code(policy, spec.plan, spec.config, self.observation_space, self.action_space, serial=spec.serial)
        return Learner(policy, BeforeLearnOnBatch(self.before_learn_on_batch))


@dataclass(frozen=True)
class _Given:
    """A batch in the learner's hands."""

    shard: int
    replayed: Replayed
    env_steps: int
    future: Future


class QueuedLearner:
    """The learner behind its queues: batches go in, updates come out in the same order.

    Args:
        backend: where it lives.
        make: makes it.
        crew: of one actor on a machine of its own; None for a thread of the driver.
    """

    def __init__(
        self,
        backend: Backend,
        make: MakeLearner,
        crew: Crew | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backend = backend
        self.sizes = QueueSizes()
        self.updates = 0
        self._crew = crew
        self._actor: Actor | None = None if crew else backend.here(partial(make, 1, 0), index=1)
        self._given: deque[_Given] = deque()
        self._lost: deque[LostBatch] = deque()
        self._copy: State | None = None
        self._copying: Future | None = None
        self._copied_at = monotonic()
        self._monotonic = monotonic

    @property
    def remote(self) -> bool:
        """Whether it has a machine of its own, which may be lost."""
        return self._crew is not None

    def pending(self) -> Sequence[Future]:
        """The learner that is being made."""
        return self._crew.pending() if self._crew else ()

    def refresh(self) -> None:
        """Take in a learner that has become ready, and copy its state now and then."""
        if self._crew is None:
            return
        for actor in self._crew.arrived():
            self._actor = actor
            if self._copy is not None:
                # Before anything else, or somebody could see a learner that has learnt nothing.
                self._ask(partial(_restore, state=self._copy))
        if self._actor is not None and self.backend.parallel:
            self._copy_now_and_then(self._actor)

    def put(self, shard: int, replayed: Replayed) -> bool:
        self.refresh()
        if self._actor is None or len(self._given) >= IN_QUEUE:
            return False
        self.sizes.push(len(self._given))
        self._give(self._actor, shard, replayed, get_metrics().counters[STEPS_SAMPLED])
        return True

    def take(self) -> Update | LostBatch | Signal:
        self.refresh()
        if self._lost:
            return self._lost.popleft()
        if not self._given or not self.backend.wait([self._given[0].future], 0.0):
            return NOT_READY
        given = self._given.popleft()
        try:
            learnt, priorities = self.backend.result(given.future)
        except ShardFailure as failure:
            self._lost.append(LostBatch(given.replayed.count))
            self.failed([failure])
            return self._lost.popleft()
        self.updates += 1
        if self._crew is not None:
            self._crew.succeeded(given.future.actor)
        return Update(given.shard, given.replayed.sampled.incarnation, learnt, priorities)

    def waits(self) -> Sequence[Future]:
        return [given.future for given in list(self._given)[:1]] + list(self.pending())

    def weights(self) -> dict[str, Array] | None:
        weights: dict[str, Array] | None = self._ask(Learner.get_weights)
        return weights

    def update_target(self) -> None:
        self._ask(Learner.update_target)

    def owns(self, actor: Actor) -> bool:
        """Whether it is the learner."""
        return actor is self._actor

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        """Make a lost learner again. Raises what it died of where that was its own doing."""
        for failure in failures:
            if isinstance(failure, ValueLost):
                log.warning("a batch is lost on its way to the learner: %s", failure)
            elif isinstance(failure, ActorFailed):
                cause = failure.__cause__
                if isinstance(cause, RltrainError):
                    raise cause
                raise TrainingFailed(f"the learner failed: {type(cause).__name__}: {cause}") from cause
            elif self._crew is None:
                raise TrainingFailed(f"the learner's thread has ended: {failure}") from failure
            elif self.owns(failure.actor):
                self._actor, self._copying = None, None
                self._lost.extend(LostBatch(given.replayed.count) for given in self._given)
                self._given.clear()
                self._crew.replace([failure])

    def get_state(self) -> State:
        """The policy that learns, and counts; without other actors at work also what is in the queue."""
        while self._actor is None and self._copy is None:
            self.backend.wait(self.pending())
            self.refresh()
        state = self._ask(Learner.get_state)
        self._copy = state if state is not None else self._copy
        queue = [] if self.backend.parallel else [_saved(given) for given in self._given]
        return {
            "policy": self._copy,
            "updates": self.updates,
            "sizes": list(self.sizes.values),
            "sizes_count": self.sizes.count,
            "queue": queue,
        }

    def set_state(self, state: State) -> None:
        """Go on from a saved state, now or once the learner is there."""
        self._copy = state["policy"]
        self.updates = int(state["updates"])
        self.sizes.values.extend(int(size) for size in state["sizes"])
        self.sizes.count = int(state["sizes_count"])
        while self._actor is None and not self.backend.parallel:
            self.refresh()
        if self._actor is not None:
            self._ask(partial(_restore, state=self._copy))
            for saved in state["queue"]:
                replayed = Replayed(Sampled(**saved["sampled"]), Batch(saved["columns"]))
                self._give(self._actor, int(saved["shard"]), replayed, int(saved["env_steps"]))

    def close(self) -> None:
        """End a learner that is a thread of this process."""
        if self._crew is None and self._actor is not None:
            self.backend.kill(self._actor)

    def _give(self, actor: Actor, shard: int, replayed: Replayed, env_steps: int) -> None:
        future = actor.apply_split(Learner.learn, env_steps, replayed.batch)
        self._given.append(_Given(shard, replayed, env_steps, future))

    def _ask(self, function: Callable[[Learner], Any]) -> Any:
        """What it says between two updates; None where there is no learner just now."""
        if self._actor is None:
            return None
        try:
            return self.backend.result(self._actor.control(function))
        except ShardFailure as failure:
            self.failed([failure])
            return None

    def _copy_now_and_then(self, actor: Actor) -> None:
        if self._copying is None and self._monotonic() - self._copied_at >= COPY_SECONDS:
            self._copied_at = self._monotonic()
            self._copying = actor.control(Learner.get_state)
        if self._copying is not None and self.backend.wait([self._copying], 0.0):
            copying, self._copying = self._copying, None
            try:
                self._copy = self.backend.result(copying)
            except ShardFailure as failure:
                self.failed([failure])


def _restore(learner: Learner, state: State) -> None:
    learner.set_state(state)


def _saved(given: _Given) -> State:
    return {
        "shard": given.shard,
        "env_steps": given.env_steps,
        "sampled": asdict(given.replayed.sampled),
        "columns": dict(given.replayed.batch.columns),
    }
