"""Several learners that learn together: as one would, and what happens when one of them is lost."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import TrainingFailed
from rltrain.flow import Actor, ActorFailed, Backend, CollectiveFailed, MetricsContext
from rltrain.flow.metrics import BATCHES_LOST, STEPS_TRAINED
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend
from rltrain.ops.learner import Learner, LostBatch, Update
from rltrain.ops.learner_group import GroupLearner
from rltrain.ops.shards import Replayed
from rltrain.replay.shard import Sampled
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime import learner_actors
from rltrain.runtime.apex import make_learner
from rltrain.runtime.build import Training
from rltrain.runtime.learner import QueuedLearner, _Given
from rltrain.state import State, content_hash
from trainer.flow.backends import BACKENDS
from trainer.runtime.runs import APEX, job


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "serial":
        return SerialBackend()
    made: Backend = request.getfixturevalue("ray_backend")
    return made


class Learning:
    """The learner of a training, alone."""

    def __init__(self, backend: Backend, replicas: int) -> None:
        manifest = job(APEX, rollouts={"replicas": 0}, learners={"replicas": replicas}, config={"noisy": True})
        spec = manifest.spec
        local = RolloutWorker(WorkerSpec(spec.base, spec.env, spec.config, spec.seed, serial=backend.serial))
        self.backend, self.learner = backend, make_learner(manifest, backend, local, ("cpu",))
        # On a busy machine it would be time for a copy just before a test looks at a loss.
        self.learner.actors._copied_at = math.inf
        self.gather()

    def gather(self) -> None:
        while pending := self.learner.pending():
            self.backend.wait(pending, 1.0)
            self.learner.refresh()

    @property
    def members(self) -> tuple[Actor, ...]:
        return self.learner.actors.live

    def give(self, batch: Any, count: int = 15) -> None:
        assert self.learner.put(1, Replayed(Sampled(count, 0, 100), (batch,)))

    def take(self) -> Update | LostBatch:
        """What becomes of the batch given first."""
        while not isinstance(taken := self.learner.take(), Update | LostBatch):
            self.backend.wait(self.learner.waits(), 60)
        return taken

    def learn(self, batch: Batch) -> tuple[Update, list[Any]]:
        self.give(batch)
        update = self.take()
        assert isinstance(update, Update)
        return update, [part for each in update.priorities for part in value_of(each)]

    def states(self) -> list[State]:
        states: list[State] = [self.backend.result(actor.apply(Learner.get_state)) for actor in self.members]
        return states

    def hashes(self) -> set[str]:
        return {content_hash({**state, "torch_rng": None}) for state in self.states()}

    def kill(self, actor: Actor) -> None:
        if isinstance(self.backend, SerialBackend):
            self.backend.kill(actor)
        else:
            os.kill(self.backend.result(actor.control(process_of)), signal.SIGKILL)


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def value_of(each: Any) -> Any:
    import ray

    return ray.get(each) if isinstance(each, ray.ObjectRef) else each


def process_of(target: object) -> int:
    return os.getpid()


def batches(count: int, rows: int = 15, seed: int = 0) -> list[Batch]:
    rng = np.random.default_rng(seed)
    return [
        Batch(
            {
                c.OBS: rng.normal(size=(rows, 4)).astype(np.float32),
                c.NEXT_OBS: rng.normal(size=(rows, 4)).astype(np.float32),
                c.ACTIONS: rng.integers(2, size=rows),
                c.REWARDS: rng.normal(size=rows).astype(np.float32),
                c.DISCOUNTS: np.full(rows, 0.99, np.float32),
                c.WEIGHTS: rng.random(rows).astype(np.float32),
                c.BATCH_INDEXES: np.arange(rows),
                c.GENERATIONS: np.zeros(rows, np.int64),
            }
        )
        for _ in range(count)
    ]


def test_two_learners_are_identical_and_learn_what_one_learns_of_the_same_batches(
    backend: Backend, metrics: MetricsContext
) -> None:
    one, two = Learning(SerialBackend(), 1), Learning(backend, 2)
    assert len(two.members) == 2
    for number, batch in enumerate(batches(6)):
        (expected, (all_rows,)), (update, parts) = one.learn(batch), two.learn(batch)
        assert update.learnt[0].count == expected.learnt[0].count == 15
        assert update.learnt[0].stats == pytest.approx(expected.learnt[0].stats, abs=1e-4)
        assert [len(part.indexes) for part in parts] == [7, 8], "the rows are shared"
        np.testing.assert_array_equal(np.concatenate([part.indexes for part in parts]), all_rows.indexes)
        np.testing.assert_allclose(np.concatenate([part.td_error for part in parts]), all_rows.td_error, atol=1e-5)
        if number == 2:
            one.learner.update_target()
            two.learner.update_target()
    assert len(two.hashes()) == 1
    for (name, expected_value), value in zip(
        sorted(one.states()[0]["weights"].items()),
        dict(sorted(two.states()[1]["weights"].items())).values(),
        strict=True,
    ):
        np.testing.assert_allclose(value, expected_value, atol=1e-5, err_msg=name)
    targets = [each.states()[0]["target"] for each in (one, two)]
    assert targets[0].keys() == targets[1].keys()
    for name, value in targets[0].items():
        np.testing.assert_allclose(targets[1][name], value, atol=1e-5, err_msg=name)


def test_a_batch_of_fewer_rows_than_learners_is_learnt_from(metrics: MetricsContext) -> None:
    two = Learning(SerialBackend(), 2)
    update, parts = two.learn(batches(1, rows=1)[0])
    assert update.learnt[0].count == 1
    assert [len(part.indexes) for part in parts] == [0, 1]
    assert len(two.hashes()) == 1


class HangBefore:
    """In its n-th update the learner waits for its death before its vector is averaged."""

    def __init__(self, update: int) -> None:
        self.left = update

    def __call__(self, learner: GroupLearner) -> None:
        average = learner.average
        assert average is not None

        def hanging(vector: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                threading.Event().wait()
            return average(vector)

        learner.average = hanging


@pytest.mark.parametrize("victim", [0, 1])
def test_a_learner_killed_before_the_averaging_costs_the_batches_in_the_queue_and_no_update(
    ray_backend: RayBackend, metrics: MetricsContext, victim: int
) -> None:
    two = Learning(ray_backend, 2)
    former = two.members
    ray_backend.result(former[victim].apply(HangBefore(4)))
    given = batches(6)
    for batch in given:
        two.give(batch)
    taken = [two.take() for _ in given[:3]]
    two.kill(former[victim])
    taken += [two.take() for _ in given[3:]]
    assert [type(each) for each in taken] == [Update] * 3 + [LostBatch] * 3, "long before the collective's 600 s"
    assert metrics.counters["num_learners_lost"] == 1
    assert metrics.counters["num_learner_failures"] == 0, "the survivor's broken averaging is no failure of its own"
    two.gather()
    assert not set(former) & set(two.members)
    assert len(two.hashes()) == 1
    one = Learning(SerialBackend(), 1)
    for batch in given[:3]:
        one.learn(batch)
    step = [float(each.states()[0]["optimizer"]["step"]) for each in (one, two)]
    assert step == [3, 3], "they go on from the survivor's state"
    assert_close(two.states()[0]["weights"], one.states()[0]["weights"])


def test_the_loss_of_all_is_made_good_by_the_drivers_copy(ray_backend: RayBackend, metrics: MetricsContext) -> None:
    two = Learning(ray_backend, 2)
    two.learn(batches(1)[0])
    copied = two.learner.get_state()["policy"]
    for actor in two.members:
        two.kill(actor)
    two.give(batches(1)[0])
    assert two.take() == LostBatch(15)
    two.gather()
    assert metrics.counters["num_learners_lost"] == 2
    assert two.hashes() == {content_hash({**copied, "torch_rng": None})}


def test_a_target_update_that_was_under_way_is_made_after_the_loss(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    two = Learning(ray_backend, 2)
    first, *others = batches(3)
    two.learn(first)
    ray_backend.result(two.members[0].apply(HangBefore(1)))
    two.give(others[0])
    two.learner.update_target()
    two.kill(two.members[0])
    assert isinstance(two.take(), LostBatch)
    two.gather()
    assert len(two.hashes()) == 1
    state = two.states()[1]
    assert content_hash(state["target"]) == content_hash(state["weights"])


def test_a_learner_that_says_nothing_while_the_other_s_averaging_breaks_is_the_one_that_is_lost(
    ray_backend: RayBackend, metrics: MetricsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_actors, "SURVIVOR_SECONDS", 2.0)
    two = Learning(ray_backend, 2)
    two.learn(batches(1)[0])
    victim, survivor = two.members
    process = ray_backend.result(victim.control(process_of))
    failure = ActorFailed(survivor, "all-reduce broke off")
    failure.__cause__ = CollectiveFailed("all-reduce broke off: Connection closed by peer")
    os.kill(process, signal.SIGSTOP)  # as a machine that is gone, before Ray has missed it
    try:
        two.learner.actors.failed(failure)
    finally:
        os.kill(process, signal.SIGKILL)
    assert metrics.counters["num_learners_lost"] == 1
    assert metrics.counters["num_learner_failures"] == 0
    two.gather()
    assert not {victim, survivor} & set(two.members)


class Unreachable:
    """A member that can't get hold of a batch that another one has."""

    def __call__(self, learner: GroupLearner, number: int, env_steps: int, batch: Batch) -> Any:
        import ray.exceptions

        raise ray.exceptions.ObjectFetchTimedOutError("0" * 56, None, "")


def unreachable(actors: Sequence[Actor]) -> list[Any]:
    return [actor.apply_split(Unreachable(), 1, 0, None) for actor in actors]


def test_what_one_learner_has_missed_is_not_mixed_up_with_what_it_has_and_the_group_is_made_again(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    two = Learning(ray_backend, 2)
    former, (first, second) = two.members, batches(2)
    two.give(first)
    two.take()
    two.learner._given.append(_Given(1, Replayed(Sampled(15, 0, 100), None), 0, unreachable(former)))
    assert two.take() == LostBatch(15)
    assert two.members == former, "a batch that none of them could get hold of is lost, and that is all"
    expected = two.hashes()
    futures = [
        former[0].apply_split(GroupLearner.learn_shares, 7, 0, (first,)),
        former[1].apply_split(GroupLearner.learn_shares, 8, 0, (second,)),
    ]
    for future in futures:
        with pytest.raises(ActorFailed, match=r"this learner has batch [78], and another one another"):
            ray_backend.result(future)
    assert two.hashes() == expected, "nothing has been learnt of either"

    two.give(first)
    given = two.learner._given[0]
    given.futures = [given.futures[0], *unreachable(former[1:])]
    assert two.take() == LostBatch(15)
    two.gather()
    assert not set(former) & set(two.members)
    assert len(two.hashes()) == 1


def test_learners_that_drift_apart_are_found_out(ray_backend: RayBackend, metrics: MetricsContext) -> None:
    two = Learning(ray_backend, 2)
    ray_backend.result(two.members[1].apply(_drift))
    two.learner.actors._copied_at = -1e9
    with pytest.raises(TrainingFailed, match="learners have drifted apart"):  # noqa: PT012 - whenever it is noticed
        two.learner.refresh()
        for future in two.learner.actors._hashing:
            ray_backend.wait([future], 60)
        two.learner.refresh()


def _drift(learner: Learner) -> None:
    state = learner.get_state()
    name = next(iter(state["weights"]))
    state["weights"][name][...] += 1
    learner.set_state(state)


def test_apex_trains_with_two_learners_and_goes_on_when_one_is_killed(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    fewest = {"rollouts": {"replicas": 1}, "config": {"optimizer": {"num_replay_buffer_shards": 1}}}
    training = Training(job(APEX, learners={"replicas": 2}, **fewest), ray_backend, metrics)
    learner = training.learner
    assert isinstance(learner, QueuedLearner)

    def until(condition: Callable[[], object]) -> None:
        while not condition():
            training.flow.tick(1.0)

    until(lambda: metrics.counters[STEPS_TRAINED] >= 200)
    os.kill(ray_backend.result(learner.actors.live[1].control(process_of)), signal.SIGKILL)
    until(lambda: metrics.counters["num_learners_lost"])
    until(lambda: len(learner.actors.live) == 2)
    assert metrics.counters["num_learners_lost"] == 1
    assert metrics.counters[BATCHES_LOST] <= 16
    trained = metrics.counters[STEPS_TRAINED]
    until(lambda: metrics.counters[STEPS_TRAINED] >= trained + 200)
    assert metrics.counters["num_target_updates"]
