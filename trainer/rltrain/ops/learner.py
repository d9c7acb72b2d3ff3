"""A learner that runs beside the driver: what it does, how it is given batches, and how workers get its weights."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from rltrain.flow import NOT_READY, PROGRESS, Actor, Backend, Future, LocalIterator, Outstanding, Signal, get_metrics
from rltrain.flow.metrics import BATCHES_LOST, STEPS_TRAINED, STEPS_TRAINED_THIS_ITER
from rltrain.ops.context import Workers
from rltrain.ops.ledger import Ledger
from rltrain.ops.rollouts import Delivered
from rltrain.ops.shards import Replayed, ReplayShards
from rltrain.ops.train import BeforeLearnOnBatch
from rltrain.policies.base import Learned
from rltrain.replay.shard import PriorityUpdate, ReplayShard
from rltrain.rollout.multi_agent_batch import AnyBatch
from rltrain.state import State

UPDATES_IN_FLIGHT: Final = 64
"""Priority updates on their way to shards at most."""
_SIZES: Final = 50


@dataclass(frozen=True)
class Learnt:
    """What an update tells.

    Attributes:
        count: transitions learnt from.
        waited_s: seconds since the update before it, in which the learner had nothing to do or fetched the batch.
        learnt_s: seconds of the update itself.
    """

    count: int
    stats: dict[str, float]
    waited_s: float
    learnt_s: float


class Learner:
    """The policy that learns. Lives where its actor does, in a thread of the driver or on a machine of its own.

    Args:
        policy: learns.
        before_learn: applied to each batch first.
    """

    def __init__(self, policy: Learned[Any], before_learn: BeforeLearnOnBatch) -> None:
        self.policy = policy
        self._before_learn = before_learn
        # Whoever reads the networks must not see an update half done.
        self._whole = threading.Lock()
        self._since = time.perf_counter()

    def learn(
        self, env_steps: int, batches: Sequence[AnyBatch]
    ) -> tuple[tuple[Learnt, ...], tuple[PriorityUpdate, ...]]:
        """One update with each batch, with schedules at the global step."""
        updates = [self._update(env_steps, batch) for batch in batches]
        priorities = tuple(priority for _, priority in updates if priority is not None)
        return tuple(learnt for learnt, _ in updates), priorities

    def _update(self, env_steps: int, batch: AnyBatch) -> tuple[Learnt, PriorityUpdate | None]:
        begun = time.perf_counter()
        batch = self._before_learn(batch)
        with self._whole:
            self.policy.set_global_step(env_steps)
            info = self.policy.learn_on_batch(batch)
        learnt = self._learnt(begun, batch.count, info.stats)
        return learnt, None if info.td_error is None else PriorityUpdate.of(batch, info.td_error)

    def _learnt(self, begun: float, count: int, stats: dict[str, float]) -> Learnt:
        """What to tell of an update that has just been made."""
        now = time.perf_counter()
        learnt = Learnt(count, stats, waited_s=begun - self._since, learnt_s=now - begun)
        self._since = now
        return learnt

    def update_target(self) -> None:
        """Copy the network to the target network."""
        with self._whole:
            self.policy.update_target()

    def get_weights(self) -> State:
        """A whole snapshot of what acting needs."""
        with self._whole:
            return self.policy.get_weights()

    def get_state(self) -> State:
        """The policy's state."""
        with self._whole:
            return self.policy.get_state()

    def set_state(self, state: State) -> None:
        """Take up a saved state. Raises CheckpointMismatch."""
        with self._whole:
            self.policy.set_state(state)


@dataclass(frozen=True)
class Update:
    """Updates that the driver has heard of: the batches they were made with, and references to their priorities.

    Attributes:
        learnt: of each update.
        priorities: each of some rows of every batch, in their order.
    """

    shard: int
    incarnation: int
    learnt: tuple[Learnt, ...]
    priorities: tuple[Any, ...]


@dataclass(frozen=True)
class LostBatch:
    """Batches that were given to the learner at once and never learnt from; `count` is of their transitions."""

    count: int
    batches: int = 1


class LearnerHandle(Protocol):
    """The learner's in-queue and out-queue."""

    sizes: "QueueSizes"

    @property
    def backend(self) -> Backend:
        """Where it lives."""

    @property
    def updates(self) -> int:
        """Updates that were taken out, over all attempts."""

    def put(self, shard: int, replayed: Replayed) -> bool:
        """Give it batches; False where the in-queue is full or there is no learner just now."""

    def take(self) -> Update | LostBatch | Signal:
        """The next updates from the out-queue. Raises what the learner died of."""

    def waits(self) -> Sequence[Future]:
        """What the next update, or the learner itself, is waited for by."""

    def weights(self) -> State | None:
        """A whole snapshot of its newest weights; None where there is no learner just now."""

    def update_target(self) -> None:
        """Copy the network to the target network."""


class QueueSizes:
    """Statistics of a queue's last 50 sizes."""

    def __init__(self) -> None:
        self.values: deque[int] = deque(maxlen=_SIZES)
        self.count = 0

    def push(self, size: int) -> None:
        """Add one."""
        self.values.append(size)
        self.count += 1

    def stats(self) -> dict[str, Any]:
        """As reports hold them; quantiles are 0, 25, 50, 75 and 100 %."""
        sizes = np.array(self.values or [0], float)
        return {
            "size_count": self.count,
            "size_mean": float(sizes.mean()),
            "size_std": float(sizes.std()),
            "size_quantiles": np.percentile(sizes, [0, 25, 50, 75, 100]).tolist(),
        }


class Enqueue:
    """Give the learner its batches; those that find its in-queue full are kept and offered again."""

    def __init__(self, learner: LearnerHandle) -> None:
        self._learner = learner

    def __call__(self, item: tuple[Actor, Replayed]) -> Signal | None:
        shard, replayed = item
        return PROGRESS if self._learner.put(shard.index, replayed) else NOT_READY


def Dequeue(learner: LearnerHandle) -> LocalIterator[Update | LostBatch]:  # noqa: N802 - a noun like the others
    """What the learner has done, in order."""
    return LocalIterator(learner.take, learner.waits, learner.backend.wait)


class UpdatePrioritiesAndStats:
    """Send new priorities to the shards that the batches came from, and count what was learnt.

    A batch that was lost is counted, and the ledger gets its price back.
    """

    def __init__(self, shards: ReplayShards, ledger: Ledger, *, prioritized: bool) -> None:
        self._shards = shards
        self._ledger = ledger
        self._prioritized = prioritized
        self._sent = Outstanding(shards.backend, UPDATES_IN_FLIGHT, shards.failed)

    def __call__(self, update: Update | LostBatch) -> Update | Signal:
        metrics = get_metrics()
        if isinstance(update, LostBatch):
            metrics.counters[BATCHES_LOST] += update.batches
            self._ledger.spend(-update.count)
            return PROGRESS
        if self._sent.full:
            return NOT_READY
        if self._prioritized and update.priorities:
            # A shard made again meanwhile drops them: its slots hold other transitions.
            for actor in self._shards.actors():
                if actor.index == update.shard:
                    call = actor.apply(ReplayShard.update_priorities, update.incarnation, *update.priorities)
                    self._sent.add(call)
        count = sum(learnt.count for learnt in update.learnt)
        metrics.counters[STEPS_TRAINED_THIS_ITER] = count
        metrics.counters[STEPS_TRAINED] += count
        metrics.info["learner"] = update.learnt[-1].stats
        for learnt in update.learnt:
            metrics.timer("learner_dequeue").push_measured(learnt.waited_s)
            metrics.timer("learner_grad").push_measured(learnt.learnt_s)
            metrics.timer("learner_grad").push_units(learnt.count)
            metrics.timer("learner_overall").push_measured(learnt.waited_s + learnt.learnt_s)
        return update

    def waits(self) -> Sequence[Future]:
        return self._sent.pending


class UpdateWorkerWeights:
    """Send a worker new weights once it has sampled enough with its old ones, if the learner has any.

    Args:
        learner: whose weights; each snapshot is also what the driver's own policy follows.
        workers: who get them.
        max_weight_sync_delay: env steps of a worker between two syncs.
    """

    def __init__(self, learner: LearnerHandle, workers: Workers, max_weight_sync_delay: int) -> None:
        self._learner = learner
        self._workers = workers
        self._delay = max_weight_sync_delay
        self._published = 0
        self._steps: dict[int, int] = {}
        self._has: dict[int, tuple[Actor | None, int]] = {}

    def __call__(self, item: tuple[Actor, Delivered]) -> Delivered:
        actor, delivered = item
        former, version = self._has.get(actor.index, (None, 0))
        if former is not None and former is not actor:
            version = self._published  # made again, it began with the newest weights
        self._has[actor.index] = (actor, version)
        if self._due(actor.index, delivered.count) and self._publish() > version:
            self._workers.send_weights(actor)
            self._synced(actor.index, actor)
        return delivered

    def here(self, delivered: Delivered) -> Delivered:
        """The same where the driver's own worker samples."""
        before = self._published
        if self._due(0, delivered.count) and self._publish() > before:
            self._synced(0, None)
        return delivered

    def get_state(self) -> State:
        """Steps since the last sync and version of the weights of each worker."""
        return {
            "published": self._published,
            "steps": {str(index): steps for index, steps in self._steps.items()},
            "versions": {str(index): version for index, (_, version) in self._has.items()},
        }

    def set_state(self, state: State) -> None:
        self._published = int(state["published"])
        self._steps = {int(index): int(steps) for index, steps in state["steps"].items()}
        self._has = {int(index): (None, int(version)) for index, version in state["versions"].items()}

    def _due(self, index: int, steps: int) -> bool:
        self._steps[index] = self._steps.get(index, 0) + steps
        return self._steps[index] >= self._delay

    def _publish(self) -> int:
        """Version of the newest snapshot; a new one is taken only if the learner has learnt since the last."""
        updates = self._learner.updates
        if updates > self._published and (weights := self._learner.weights()) is not None:
            self._published = updates
            self._workers.local.set_weights(weights)
            self._workers.publish_weights(only_new=True)
        return self._published

    def _synced(self, index: int, actor: Actor | None) -> None:
        self._steps[index] = 0
        self._has[index] = (actor, self._published)
        get_metrics().counters["num_weight_syncs"] += 1
