"""What single operators do, in serial mode with real workers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import InvalidManifest, TrainingFailed
from rltrain.flow import NOT_READY, PROGRESS, LocalIterator, MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.ops import (
    BeforeLearnOnBatch,
    IntensityLedger,
    ParallelRollouts,
    Replay,
    Result,
    StandardMetricsReporting,
    StoreToReplayBuffer,
    UpdatePriorities,
    UpdateTargetNetwork,
    agree_on_minibatches,
)
from rltrain.ops.ranks import Size
from rltrain.ops.rollouts import Delivered
from rltrain.ops.train import Trained
from rltrain.policies.base import LearnInfo
from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import BATCH_INDEXES, OBS
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.build import Training
from rltrain.state import content_hash
from trainer.runtime.runs import DDPPO, DQN, job


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    now = [0.0]
    context = MetricsContext(clock=lambda: now[0])
    context.info["now"] = now
    with context.active():
        yield context


def training(spec: dict[str, Any], metrics: MetricsContext, **changes: Any) -> Training:
    built = Training(job(spec, **changes), SerialBackend(), metrics)
    while len(built.workers.actors()) < built.workers.wanted:
        built.workers.refresh()
    return built


def epsilon_of(worker: RolloutWorker) -> float:
    return worker.policy.exploration_state()["epsilon"]


def weights_of(worker: RolloutWorker) -> str:
    return content_hash(worker.get_weights())


def test_bulk_sync_concatenates_one_fragment_of_every_worker(metrics: MetricsContext) -> None:
    built = training(DQN, metrics, rollouts={"replicas": 3})
    batch = ParallelRollouts(built.workers, mode="bulk_sync").pull()
    assert isinstance(batch, Batch)
    assert batch.count == metrics.counters[STEPS_SAMPLED] == 3 * 2 * 4


def test_async_brings_one_fragment_at_a_time(metrics: MetricsContext) -> None:
    built = training(DQN, metrics, rollouts={"replicas": 3})
    rollouts = ParallelRollouts(built.workers, mode="async", num_async=2)
    fragments = [item for item in (rollouts.pull() for _ in range(6)) if isinstance(item, Delivered)]
    assert [fragment.count for fragment in fragments] == [8] * 6
    assert [fragment.experience.batch.count for fragment in fragments] == [8] * 6


def test_without_workers_the_driver_samples(metrics: MetricsContext) -> None:
    built = training(DQN, metrics)
    batch = ParallelRollouts(built.workers, mode="bulk_sync").pull()
    assert isinstance(batch, Batch)
    assert batch.count == 8


def test_every_sample_carries_the_newest_weights_and_the_global_step(metrics: MetricsContext) -> None:
    built = training(DQN, metrics, rollouts={"replicas": 2})
    rollouts = ParallelRollouts(built.workers, mode="bulk_sync")
    metrics.counters[STEPS_SAMPLED] = 250
    rollouts.pull()
    backend = built.workers.backend
    epsilons = {backend.result(actor.apply(epsilon_of)) for actor in built.workers.actors()}
    assert epsilons == {1 - 0.98 * 250 / 500}, "the whole job's steps, not the worker's own"

    weights = {name: value + 1 for name, value in built.local.get_weights().items()}
    built.local.set_weights(weights)
    rollouts.pull()
    old = {backend.result(actor.apply(weights_of)) for actor in built.workers.actors()}
    assert old != {content_hash(weights)}, "not before they are published"
    built.workers.publish_weights()
    rollouts.pull()
    assert {backend.result(actor.apply(weights_of)) for actor in built.workers.actors()} == {content_hash(weights)}


def test_replay_is_not_ready_before_it_is_warm_and_storing_earns_nothing_until_then(metrics: MetricsContext) -> None:
    built = training(DQN, metrics)
    buffer = ReplayBuffer(100, learning_starts=20)
    ledger = IntensityLedger(2.0, 16)
    store = ParallelRollouts(built.workers, mode="bulk_sync").for_each(StoreToReplayBuffer(buffer, ledger))
    replay = Replay(buffer, 16, ledger)
    pulled: list[str] = []
    for _ in range(6):
        store.pull()
        while isinstance(replay.pull(), Batch):
            pulled.append(f"batch at {len(buffer)}")
    #         8: cold, 16: cold, 24: earns 8 * 2 = one batch, 32: one, ...
    assert pulled == ["batch at 24", "batch at 32", "batch at 40", "batch at 48"]
    assert replay.pull() is NOT_READY


def test_priorities_go_to_the_slots_that_were_drawn(metrics: MetricsContext) -> None:
    buffer = ReplayBuffer(8, alpha=1.0, eps=1e-9, seed=1)
    buffer.add(Batch({OBS: np.arange(8, dtype=np.float32)[:, None]}))
    batch = buffer.sample(4)
    assert batch is not None
    td_error = 10.0 + batch[OBS][:, 0]  # of the transition itself
    UpdatePriorities(buffer)(Trained(batch, LearnInfo({}, td_error)))
    priorities = buffer.get_state()["priorities"]
    for slot in batch[BATCH_INDEXES]:
        assert priorities[slot] == pytest.approx(10 + slot)


def test_dqn_stores_and_trains_in_turn(metrics: MetricsContext) -> None:
    config = {key: value for key, value in DQN["config"].items() if key != "training_intensity"}
    built = training({**DQN, "config": {**config, "learning_starts": 16}}, metrics)
    table = []
    for _ in range(6):
        item = built.flow.pull()
        assert item is PROGRESS or not isinstance(item, Signal)
        table.append((metrics.counters[STEPS_SAMPLED], metrics.counters[STEPS_TRAINED]))
    assert table == [(8, 0), (16, 0), (16, 16), (24, 16), (24, 32), (32, 32)]


def test_target_follows_sampled_steps_at_its_frequency(metrics: MetricsContext) -> None:
    built = training(DQN, metrics)
    update: Any = UpdateTargetNetwork(built.workers, 100)
    for steps in (50, 99, 100, 150, 199, 200, 450):
        metrics.counters[STEPS_SAMPLED] = steps
        update(None)
    assert metrics.counters["num_target_updates"] == 3
    assert metrics.counters["last_target_update_step"] == 450


def test_a_report_needs_both_the_steps_and_the_seconds(metrics: MetricsContext) -> None:
    built = training(DQN, metrics)
    config = built.job.spec.config.model_copy(update={"timesteps_per_iteration": 100, "min_time_s_per_reporting": 2})
    flow = StandardMetricsReporting(LocalIterator.of(range(9)), built.workers, config)

    def at(steps: int, seconds: float) -> bool:
        metrics.counters[STEPS_SAMPLED] = steps
        metrics.info["now"][0] = seconds
        return flow.pull() is not PROGRESS

    assert [at(100, 1.0), at(99, 3.0), at(100, 3.0), at(250, 4.0), at(250, 5.0)] == [False, False, True, False, True]


def test_users_function_sees_each_train_batch_and_must_return_one() -> None:
    batch = Batch({})
    assert BeforeLearnOnBatch(None)(batch) is batch
    assert BeforeLearnOnBatch("trainer.ops.users:doubled")(batch).count == 0
    with pytest.raises(TrainingFailed, match="must return a Batch, not NoneType"):
        BeforeLearnOnBatch("trainer.ops.users:forgotten")(batch)
    for wrong in ("trainer.ops.users:missing", "no_such_module:f", "trainer.ops.users"):
        with pytest.raises(InvalidManifest, match="before_learn_on_batch"):
            BeforeLearnOnBatch(wrong)


def test_ranks_agree_on_the_largest_minibatch_count_and_refuse_unequal_fragments() -> None:
    agree = agree_on_minibatches(40)
    assert agree([Size(40, 4), Size(40, 5)]) == 5
    with pytest.raises(TrainingFailed, match=r"40 steps, but they bring \[40, 35\]"):
        agree([Size(40, 4), Size(35, 4)])


def test_ranks_agree_on_each_policys_largest_minibatch_count() -> None:
    agree = agree_on_minibatches(40)
    assert agree([Size(40, {"a": 4, "b": 0}), Size(40, {"a": 3, "b": 2})]) == {"a": 4, "b": 2}


def in_weights(worker: RolloutWorker) -> None:
    """Their sum stays what it was."""
    weights = worker.get_weights()
    first = next(array for array in weights.values() if array.size > 1)
    first.flat[0], first.flat[1] = first.flat[1], first.flat[0]
    worker.set_weights(weights)


def in_the_optimizer(worker: RolloutWorker) -> None:
    state = worker.policy.get_state()
    state["optimizer"]["mean"][0] += 1e-6
    worker.policy.set_state(state)


@pytest.mark.parametrize(("debug", "compared"), [("0", [True, False]), ("1", [True, True])])
def test_ranks_are_compared_each_second_and_in_debug_mode_after_each_iteration(
    debug: str, compared: list[bool], metrics: MetricsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLTRAIN_DEBUG", debug)
    built = training(DDPPO, metrics)
    results = [built.flow.pull() for _ in compared]
    assert [isinstance(result, Result) and result.rank_hashes is not None for result in results] == compared


@pytest.mark.parametrize("drift", [in_weights, in_the_optimizer])
def test_ranks_that_drift_apart_are_found_out(drift: Callable[[RolloutWorker], None], metrics: MetricsContext) -> None:
    built = training(DDPPO, metrics)
    assert not isinstance(built.flow.pull(), Signal)
    built.workers.backend.result(built.workers.actors()[1].apply(drift))
    metrics.info["now"][0] += 10
    with pytest.raises(TrainingFailed, match="drifted apart"):
        built.flow.pull()
