"""The learner behind its queues, wherever its actors live."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rltrain.flow import NOT_READY, Actor, Backend, Future, ShardFailure, Signal, ValueLost, get_metrics
from rltrain.flow.metrics import STEPS_SAMPLED
from rltrain.models.spaces import Space
from rltrain.ops.learner import Learner, Learnt, LostBatch, QueueSizes, Update
from rltrain.ops.learner_group import NUMBERS, GroupLearner, learnt_together
from rltrain.ops.shards import Replayed
from rltrain.ops.train import BeforeLearnOnBatch
from rltrain.policies.native import use_native_code
from rltrain.policies.registry import make_policy
from rltrain.policies.sharing import Share
from rltrain.replay.shard import Sampled
from rltrain.rollout.multi_agent_batch import batch_of, batch_state
from rltrain.rollout.worker import WorkerSpec
from rltrain.runtime.learner_actors import SURVIVOR_SECONDS, LearnerActors
from rltrain.state import State

IN_QUEUE: Final = 16
"""Batches that were given to the learner and not taken out again."""


@dataclass(frozen=True)
class MakeLearner:
    """Makes the learner where its actor lives.

    Attributes:
        spec: of the workers, whose policy is the learner's too.
        devices: torch devices of each.
        learners: how many learn together; each has the first weights and random states of all.
    """

    spec: WorkerSpec
    observation_space: Space
    action_space: Space
    before_learn_on_batch: str | None
    devices: tuple[str, ...]
    learners: int = 1

    def __call__(self, index: int, incarnation: int) -> Learner:
        spec = self.spec
        policy = make_policy(
            spec.plan,
            spec.config,
            self.observation_space,
            self.action_space,
            spec.seed,
            devices=self.devices,
            workers=spec.num_workers,
        )
        use_native_code(policy, spec.plan, spec.config, self.observation_space, self.action_space, serial=spec.serial)
        before_learn = BeforeLearnOnBatch(self.before_learn_on_batch)
        if self.learners == 1:
            return Learner(policy, before_learn)
        return GroupLearner(policy, before_learn, Share(index - 1, self.learners))


@dataclass
class _Given:
    """Batches in the learner's hands, given at once.

    Attributes:
        futures: what each of the learner's actors owes for it.
        results: what has come of that, by position.
    """

    shard: int
    replayed: Replayed
    env_steps: int
    futures: Sequence[Future]
    results: dict[int, tuple[tuple[Learnt, ...], Any]] = field(default_factory=dict)

    @property
    def owed(self) -> Sequence[Future]:
        """Those that haven't brought a result."""
        return [future for position, future in enumerate(self.futures) if position not in self.results]


class QueuedLearner:
    """The learner behind its queues: batches go in, updates come out in the same order.

    Args:
        make_actors: makes its actors, given whom to tell when they are lost.
    """

    def __init__(self, make_actors: Callable[[Callable[[], None]], LearnerActors]) -> None:
        self.sizes = QueueSizes()
        self.updates = 0
        self._given: deque[_Given] = deque()
        self._lost: deque[LostBatch] = deque()
        self._number = 0
        self.actors = make_actors(self._lose)

    @property
    def backend(self) -> Backend:
        return self.actors.backend

    def pending(self) -> Sequence[Future]:
        """One for each actor of the learner's that is being made."""
        return self.actors.pending()

    def refresh(self) -> None:
        """Take in a learner that has become ready, and copy its state now and then."""
        self.actors.refresh()

    def put(self, shard: int, replayed: Replayed) -> bool:
        self.refresh()
        held = sum(given.replayed.sampled.batches for given in self._given)
        if not self.actors.live or held >= IN_QUEUE:
            return False
        self.sizes.push(held)
        self._give(shard, replayed, get_metrics().counters[STEPS_SAMPLED])
        return True

    def take(self) -> Update | LostBatch | Signal:
        self.refresh()
        if self._lost:
            return self._lost.popleft()
        if not self._given:
            return NOT_READY
        given = self._given[0]
        try:
            for future in self.backend.wait(given.owed, 0.0):
                given.results[given.futures.index(future)] = self.backend.result(future)
        except ShardFailure as failure:
            return self._missed(self._given.popleft(), failure)
        if given.owed:
            return NOT_READY
        self._given.popleft()
        self.updates += given.replayed.sampled.batches
        self.actors.succeeded()
        parts = [given.results[position] for position in range(len(given.futures))]
        of_each = zip(*[learnt for learnt, _ in parts], strict=True)
        learnt = parts[0][0] if len(parts) == 1 else tuple(learnt_together(each) for each in of_each)
        priorities = tuple(part for _, part in parts if part is not None)
        return Update(given.shard, given.replayed.sampled.incarnation, learnt, priorities)

    def waits(self) -> Sequence[Future]:
        return [*(self._given[0].owed if self._given else ()), *self.pending()]

    def weights(self) -> State | None:
        weights: State | None = self.actors.ask(Learner.get_weights)
        return weights

    def update_target(self) -> None:
        self.actors.update_target()

    def owns(self, actor: Actor) -> bool:
        """Whether it is the learner, or one of it."""
        return self.actors.owns(actor)

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        """Make a lost learner again. Raises what it died of where that was its own doing."""
        for failure in failures:
            self.actors.failed(failure)

    def get_state(self) -> State:
        """The policy that learns, and counts; without other actors at work also what is in the queue."""
        while not self.actors.live and self.actors.copy is None:
            self.backend.wait(self.pending())
            self.refresh()
        state = self.actors.ask(Learner.get_state)
        self.actors.copy = state if state is not None else self.actors.copy
        queue = [] if self.backend.parallel else [_saved(given) for given in self._given]
        return {
            "policy": self.actors.copy,
            "updates": self.updates,
            "sizes": list(self.sizes.values),
            "sizes_count": self.sizes.count,
            "queue": queue,
        }

    def set_state(self, state: State) -> None:
        """Go on from a saved state, now or once the learner is there."""
        self.actors.copy = state["policy"]
        self.updates = int(state["updates"])
        self.sizes.values.extend(int(size) for size in state["sizes"])
        self.sizes.count = int(state["sizes_count"])
        while not self.actors.live and not self.backend.parallel:
            self.refresh()
        if self.actors.live:
            self.actors.restore(state["policy"])
            for saved in state["queue"]:
                replayed = Replayed(Sampled(**saved["sampled"]), tuple(map(batch_of, saved["batches"])))
                self._give(int(saved["shard"]), replayed, int(saved["env_steps"]))

    def close(self) -> None:
        """End a learner that is a thread of this process."""
        self.actors.close()

    def _give(self, shard: int, replayed: Replayed, env_steps: int) -> None:
        actors = self.actors.live
        if len(actors) == 1:
            futures = [actors[0].apply_split(Learner.learn, env_steps, replayed.batches)]
        else:
            # One reference for all: each takes its share of the rows, and what is drawn is drawn for all of them.
            call = (GroupLearner.learn_shares, self._number, env_steps, replayed.batches)
            self._number = (self._number + replayed.sampled.batches) % NUMBERS
            futures = [actor.apply_split(*call) for actor in actors]
        self._given.append(_Given(shard, replayed, env_steps, futures))

    def _missed(self, given: _Given, failure: ShardFailure) -> LostBatch:
        """Batches that haven't been learnt from, and why."""
        self._lost.append(_lost(given))
        if isinstance(failure, ValueLost) and not self._missed_by_all(given):
            self.actors.out_of_step(failure)
        else:
            self.failed([failure])
        return self._lost.popleft()

    def _missed_by_all(self, given: _Given) -> bool:
        """Whether none of the learner's actors could get hold of a batch; those that have it wait for the others."""
        for future in given.futures:
            if not self.backend.wait([future], SURVIVOR_SECONDS):
                return False
            try:
                self.backend.result(future)
            except ValueLost:
                continue
            except ShardFailure:
                return False
            return False
        return True

    def _lose(self) -> None:
        """All that the learner had been given is lost with it."""
        self._lost.extend(map(_lost, self._given))
        self._given.clear()


def _lost(given: _Given) -> LostBatch:
    return LostBatch(given.replayed.count, given.replayed.sampled.batches)


def _saved(given: _Given) -> State:
    return {
        "shard": given.shard,
        "env_steps": given.env_steps,
        "sampled": asdict(given.replayed.sampled),
        "batches": [batch_state(batch) for batch in given.replayed.batches],
    }
