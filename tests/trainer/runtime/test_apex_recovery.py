"""Ape-X on a real Ray: what happens when a worker, a shard, the learner or a batch is lost."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import TrainingFailed
from rltrain.flow import Actor, MetricsContext, Outstanding, Signal, ValueLost
from rltrain.flow.metrics import BATCHES_LOST, FRAGMENTS_LOST, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.ray_backend import RayBackend
from rltrain.ops import Result
from rltrain.ops.learner import Learner
from rltrain.ops.shards import Replayed
from rltrain.policies.apex import worker_epsilon
from rltrain.replay.shard import ReplayShard, Sampled
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.apex import make_learner
from rltrain.runtime.build import GIVE_WAY, Training
from rltrain.runtime.checkpoint_store import CheckpointStore
from rltrain.runtime.connect import connection
from rltrain.runtime.learner import QueuedLearner
from rltrain.runtime.learner_actors import LearnerActors
from rltrain.runtime.shards import ShardActors
from rltrain.state import content_hash
from trainer.runtime.runs import APEX, job


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


class Running:
    """A training over Ray, gathered."""

    def __init__(self, backend: RayBackend, metrics: MetricsContext, **changes: Any) -> None:
        self.backend, self.metrics = backend, metrics
        self.training = Training(job(APEX, **{"rollouts": {"replicas": 2}, **changes}), backend, metrics)
        assert isinstance(self.training.shards, ShardActors)
        assert isinstance(self.training.learner, QueuedLearner)
        self.shards, self.learner = self.training.shards, self.training.learner
        self.begin()

    def begin(self) -> None:
        """All that there must be is there, nothing is saved, and counts begin."""
        while pending := self.training.pending():
            self.backend.wait(pending, 1.0)
            self.training.refresh()
        self.shards.saved = lambda index: None
        self._before = Counter(self.metrics.counters)

    def until(self, condition: Callable[[], object]) -> list[Result]:
        results: list[Result] = []
        while not condition():
            item = self.training.flow.tick(1.0)
            if not isinstance(item, Signal):
                results.append(item)
        return results

    def trained(self, more: int = 160) -> None:
        """Until some more has been learnt."""
        goal = self.metrics.counters[STEPS_TRAINED] + more
        self.until(lambda: self.metrics.counters[STEPS_TRAINED] >= goal)

    def kill(self, actor: Actor) -> None:
        os.kill(self.backend.result(actor.control(process_of)), signal.SIGKILL)

    def counted(self, name: str) -> int:
        """Since the test began."""
        return self.metrics.counters[name] - self._before[name]

    def count(self, name: str) -> Callable[[], int]:
        return lambda: self.counted(name)


@pytest.fixture(scope="module")
def shared(ray_session: None) -> Iterator[Running]:
    """One training, which goes on whatever the tests do to it: starting its processes is what takes time."""
    backend = RayBackend()
    with MetricsContext().active() as context:
        made = Running(backend, context)
    yield made
    made.training.close()
    for actor in list(backend.actors):
        backend.kill(actor)


@pytest.fixture
def running(shared: Running) -> Iterator[Running]:
    with shared.metrics.active():
        shared.begin()
        yield shared


def process_of(target: object) -> int:
    return os.getpid()


def epsilon_of(worker: RolloutWorker) -> float:
    return worker.policy.exploration_state()["epsilon"]


def niceness_of(target: object) -> int:
    return os.nice(0)


def test_sampling_gives_way_to_replay_and_learning_on_a_machine_that_they_share(running: Running) -> None:
    def niceness(actors: Sequence[Actor]) -> set[int]:
        return {running.backend.result(actor.control(niceness_of)) for actor in actors}

    here = os.nice(0)  # the learner's thread has it too
    assert niceness(running.shards.actors()) == {here}
    assert niceness(running.training.workers.actors()) == {min(here + GIVE_WAY, 19)}


def test_a_lost_worker_keeps_its_epsilon_and_a_lost_shard_comes_back_empty_without_a_checkpoint(
    running: Running,
) -> None:
    running.trained()
    worker, shard = running.training.workers.actors()[1], running.shards.actors()[1]
    running.kill(worker)
    running.kill(shard)
    running.until(running.count("num_workers_lost"))
    running.until(running.count("num_replay_shards_emptied"))
    running.until(lambda: len(running.training.workers.actors()) == 2)
    assert running.counted("num_replay_shards_lost") == 1
    assert running.counted("num_replay_shards_restored") == 0
    assert running.counted(FRAGMENTS_LOST) == 1
    epsilons = [running.backend.result(actor.apply(epsilon_of)) for actor in running.training.workers.actors()]
    assert epsilons == [worker_epsilon(1, 2), worker_epsilon(2, 2)]
    running.until(lambda: len(running.shards.warm.actors()) == 2)
    running.trained()


def test_a_lost_shard_is_restored_from_the_newest_checkpoint(running: Running, tmp_path: Path) -> None:
    running.trained()
    training = running.training
    parts = training.get_state()
    training.saved(CheckpointStore(tmp_path).save(training.identity, training.summary(1, parts), parts))
    running.kill(running.shards.actors()[0])
    running.until(running.count("num_replay_shards_restored"))
    stats = running.backend.result(running.shards.actors()[0].apply(ReplayShard.stats))
    assert stats.added >= parts["replay_1"]["added"] > 0
    assert running.counted("num_replay_shards_emptied") == 0
    running.trained()


def test_a_lost_learner_goes_on_from_the_drivers_copy_and_what_it_held_is_counted(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    fewest = {"rollouts": {"replicas": 1}, "config": {"optimizer": {"num_replay_buffer_shards": 1}}}
    running = Running(ray_backend, metrics, learners={"replicas": 1}, **fewest)
    assert running.learner.actors.remote
    running.trained()
    copied = running.learner.get_state()["policy"]
    (actor,) = running.learner.actors.live
    running.kill(actor)
    running.until(running.count("num_learners_lost"))
    running.until(lambda: running.learner.actors.live)
    step = float(running.learner.get_state()["policy"]["optimizer"]["step"])
    assert step >= float(copied["optimizer"]["step"]) > 0, "not a new one's first steps"
    assert running.learner.actors.live != (actor,)
    assert running.counted(BATCHES_LOST) <= 16
    running.trained()


def test_thread_and_remote_learner_learn_the_same_of_the_same_batches(
    running: Running, ray_backend: RayBackend
) -> None:
    shard = running.shards.actors()[0]
    running.until(lambda: running.shards.is_warm(shard))
    batches = [running.backend.result(shard.apply_split(ReplayShard.sample, 16))[1] for _ in range(5)]
    learnt: list[str] = []
    for replicas in (0, 1):
        manifest = job(APEX, learners={"replicas": replicas})
        learner = make_learner(manifest, ray_backend, running.training.local, ("cpu",))
        while pending := learner.pending():
            ray_backend.wait(pending, 1.0)
            learner.refresh()
        assert learner.actors.remote == bool(replicas)
        (actor,) = learner.actors.live
        for batch in batches:
            ray_backend.result(actor.apply_split(Learner.learn, 0, batch))
        state = learner.get_state()["policy"]
        learnt.append(content_hash({name: state[name] for name in ("weights", "target", "optimizer")}))
        learner.close()
    assert learnt[0] == learnt[1]


class SlowPolicy:
    """Learns in two steps with room between them, and breaks when told to."""

    def __init__(self) -> None:
        self.weights = np.zeros(2)
        self.between = threading.Event()
        self.go_on = threading.Event()

    def set_global_step(self, env_steps: int) -> None: ...

    def learn_on_batch(self, batch: Any) -> Any:
        self.weights[0] += 1
        self.between.set()
        assert self.go_on.wait(60)
        self.weights[1] += 1
        raise ZeroDivisionError("the loss has no gradient")

    def get_weights(self) -> dict[str, Any]:
        return {"w": self.weights.copy()}


class Slow:
    """Makes a learner with a slow policy."""

    def __init__(self, policy: SlowPolicy) -> None:
        self.policy = policy

    def __call__(self, index: int, incarnation: int) -> Learner:
        return Learner(self.policy, lambda batch: batch)  # type: ignore[arg-type]


def thread(backend: RayBackend, make: Any) -> QueuedLearner:
    """A learner in a thread of the driver."""
    return QueuedLearner(partial(LearnerActors, backend, make, None, connection(backend, "gloo", 60)))


def test_snapshots_are_whole_and_a_dead_learners_own_error_is_what_the_driver_raises(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    policy = SlowPolicy()
    make: Any = Slow(policy)
    learner = thread(ray_backend, make)
    assert learner.put(1, Replayed(Sampled(16, 0, 100), (None,)))
    assert policy.between.wait(60)
    threading.Timer(0.05, policy.go_on.set).start()
    weights = learner.weights()
    assert weights is not None
    assert weights["w"].tolist() == [1, 1], "never between the two halves of an update"
    ray_backend.wait(learner.waits(), 60)
    with pytest.raises(
        TrainingFailed, match="the learner failed: ZeroDivisionError: the loss has no gradient"
    ) as error:
        learner.take()
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    learner.close()


def test_closing_an_idle_learner_waits_for_nothing(ray_backend: RayBackend, metrics: MetricsContext) -> None:
    make: Any = Slow(SlowPolicy())
    learner = thread(ray_backend, make)
    learner.close()
    assert not learner.actors.live[0]._thread.is_alive()  # type: ignore[attr-defined]


def make_elsewhere(worker: RolloutWorker) -> list[Any]:
    """A reference to something that is gone when this process is."""
    import ray

    return [ray.put(np.ones(500_000))]


def is_there(target: object, value: Any) -> bool:
    return len(value) > 0


def await_loss(backend: RayBackend, actor: Actor, reference: Any) -> None:
    """Ray needs a moment to notice that a value's owner is gone."""
    while True:
        try:
            backend.result(actor.apply(is_there, reference))
        except ValueLost:
            return


def test_a_batch_and_a_fragment_lost_on_their_way_are_dropped_and_counted(running: Running) -> None:
    running.trained()
    worker = running.training.workers.actors()[1]
    (reference,) = running.backend.result(worker.apply(make_elsewhere))
    running.kill(worker)
    running.until(running.count("num_workers_lost"))
    shard = running.shards.actors()[0]
    await_loss(running.backend, shard, reference)
    while not running.learner.put(1, Replayed(Sampled(16, 0, 100), reference)):
        running.until(lambda: len(running.learner._given) < 16)
    running.until(lambda: running.counted(BATCHES_LOST) == 1)
    failing = Outstanding(running.backend, None, running.shards.failed)
    failing.add(shard.apply(ReplayShard.add, reference))
    running.backend.wait(failing.pending, 60)
    failing.reap()
    assert running.counted(BATCHES_LOST) == 2
    assert running.shards.owns(shard), "the shard is well"
    running.trained()


def test_nothing_piles_up_while_training_runs(running: Running) -> None:
    running.trained(1600)
    assert len(running.learner._given) <= 16
    for op_state in (running.shards._restoring, running.training.workers._syncs):  # type: ignore[union-attr]
        op_state.reap()
        assert len(op_state.pending) <= 4
    assert running.counted(STEPS_SAMPLED) > 0
