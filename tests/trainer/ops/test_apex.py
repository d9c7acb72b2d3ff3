"""What Ape-X's operators do, in serial mode with real workers, shards and a learner."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import TrainingFailed
from rltrain.flow import NOT_READY, PROGRESS, MetricsContext, Signal
from rltrain.flow.metrics import BATCHES_LOST, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.ops import (
    Dequeue,
    Enqueue,
    FreeRunning,
    IntensityLedger,
    LowestEpsilons,
    ParallelReplay,
    ParallelRollouts,
    Result,
    StoreToReplayActors,
    UpdatePrioritiesAndStats,
    UpdateTargetNetwork,
    UpdateWorkerWeights,
)
from rltrain.ops.apex import lowest_third
from rltrain.ops.learner import Learner, LostBatch, Update
from rltrain.ops.rollouts import Delivered, FragmentInfo
from rltrain.ops.shards import Replayed
from rltrain.policies.apex import worker_epsilon
from rltrain.replay.shard import ReplayShard, Sampled
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.build import Training
from rltrain.runtime.learner import IN_QUEUE, QueuedLearner
from rltrain.runtime.shards import ShardActors
from rltrain.state import content_hash
from trainer.runtime.runs import APEX, APEX_CLASSIC, job


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


class Built:
    """An Ape-X training in this process."""

    def __init__(self, metrics: MetricsContext, spec: dict[str, Any] = APEX, **changes: Any) -> None:
        self.training = Training(job(spec, **changes), SerialBackend(), metrics)
        while self.training.pending():
            self.training.refresh()
        assert isinstance(self.training.shards, ShardActors)
        assert isinstance(self.training.learner, QueuedLearner)
        self.shards, self.learner, self.workers = self.training.shards, self.training.learner, self.training.workers
        self.backend = self.training.workers.backend

    def fill(self) -> None:
        """Store until both shards are warm."""
        store = ParallelRollouts(self.workers, mode="async").for_each(
            StoreToReplayActors(self.shards, FreeRunning(), 0)
        )
        while len(self.shards.warm.actors()) < 2:
            store.pull()

    def replay(self, size: int = 16) -> tuple[Any, Replayed]:
        """One batch; of a ledger each is asked for by itself."""
        ledger = IntensityLedger(1.0, size)
        ledger.earn(size)
        item = ParallelReplay(self.shards, size, ledger, num_async=1).zip_with_source_actor().pull()
        assert not isinstance(item, Signal)
        return item

    def update(self) -> Update:
        """One batch through the learner."""
        actor, replayed = self.replay()
        assert self.learner.put(actor.index, replayed)
        update = self.learner.take()
        assert isinstance(update, Update)
        return update

    def of_shards(self, function: Callable[[ReplayShard], Any]) -> list[Any]:
        return [self.backend.result(actor.apply(function)) for actor in self.shards.actors()]

    def of_workers(self, function: Callable[[RolloutWorker], Any]) -> list[Any]:
        return [self.backend.result(actor.apply(function)) for actor in self.workers.actors()]


def epsilon_of(worker: RolloutWorker) -> float:
    return worker.policy.exploration_state()["epsilon"]


def weights_of(worker: RolloutWorker) -> str:
    return content_hash(worker.get_weights())


def priorities_of(shard: ReplayShard) -> Any:
    return shard.buffer.get_state()["priorities"]


def fragment(worker: int, count: int) -> Delivered:
    return Delivered(FragmentInfo(worker, count, ()), None)


def test_every_worker_is_made_with_the_epsilon_of_its_index(metrics: MetricsContext) -> None:
    built = Built(metrics)
    assert built.of_workers(epsilon_of) == [worker_epsilon(index, 3) for index in (1, 2, 3)]
    assert epsilon_of(built.training.local) == 0.0
    assert len(set(built.of_workers(epsilon_of))) == 3


def test_another_number_of_workers_gives_every_one_of_them_another_epsilon(metrics: MetricsContext) -> None:
    state = Built(metrics).workers.get_state()
    scaled = Built(metrics, rollouts={"replicas": 5})
    scaled.workers.set_state(state)
    scaled.workers.refresh()
    assert scaled.of_workers(epsilon_of) == [worker_epsilon(index, 5) for index in range(1, 6)]


@pytest.mark.parametrize(("workers", "indexes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 4]), (32, range(22, 33))])
def test_reported_are_the_third_of_the_workers_that_explore_least(workers: int, indexes: Any) -> None:
    assert list(lowest_third(workers)) == list(indexes)


def test_episodes_of_workers_that_explore_more_are_counted_and_not_averaged(metrics: MetricsContext) -> None:
    built = Built(metrics)
    rollouts = ParallelRollouts(built.workers, mode="async", selected_workers=LowestEpsilons(built.workers))
    finished: dict[int, list[float]] = {1: [], 2: [], 3: []}
    while not finished[3]:
        delivered = rollouts.pull()
        assert isinstance(delivered, Delivered)
        finished[delivered.info.worker] += [episode.return_ for episode in delivered.info.episodes]
    assert list(metrics.episode_returns) == finished[3]
    assert metrics.counters["num_episodes"] == sum(map(len, finished.values())) > len(finished[3])


def test_ape_x_reports_the_least_exploring_third_and_the_first_ape_x_every_worker(metrics: MetricsContext) -> None:
    for spec, share in ((APEX, 3), (APEX_CLASSIC, 1)):
        with MetricsContext().active() as own:
            built = Built(own, spec)
            while own.counters["num_episodes"] < 30:
                built.training.flow.pull()
            assert len(own.episode_returns) == pytest.approx(own.counters["num_episodes"] / share, rel=0.5)
            assert (len(own.episode_returns) == own.counters["num_episodes"]) == (share == 1)


def test_a_worker_gets_weights_after_its_own_steps_and_only_if_the_learner_has_new_ones(
    metrics: MetricsContext,
) -> None:
    built = Built(metrics)
    built.fill()
    one, two, _ = built.workers.actors()
    sync = UpdateWorkerWeights(built.learner, built.workers, max_weight_sync_delay=100)
    before = built.of_workers(weights_of)

    sync((one, fragment(1, 100)))
    assert metrics.counters["num_weight_syncs"] == 0, "the learner has learnt nothing yet"

    built.update()
    sync((two, fragment(2, 99)))
    assert metrics.counters["num_weight_syncs"] == 0, "too few steps of its own, whatever others have"
    sync((one, fragment(1, 1)))
    newest = content_hash(built.backend.result(built.learner.actors.live[0].control(Learner.get_weights)))
    assert metrics.counters["num_weight_syncs"] == 1
    assert built.of_workers(weights_of) == [newest, *before[1:]]

    sync((one, fragment(1, 100)))
    assert metrics.counters["num_weight_syncs"] == 1, "no newer ones: nothing is sent, nothing counted"
    sync((two, fragment(2, 1)))
    assert metrics.counters["num_weight_syncs"] == 2
    assert built.of_workers(weights_of)[1] == newest, "the snapshot that is there, for nothing has been learnt since"

    built.update()
    sync((one, fragment(1, 1)))
    assert metrics.counters["num_weight_syncs"] == 3, "what was due is sent with the first that there is"


def test_without_workers_the_drivers_own_policy_follows_the_learner(metrics: MetricsContext) -> None:
    built = Built(metrics, rollouts={"replicas": 0})
    built.fill()
    sync = UpdateWorkerWeights(built.learner, built.workers, max_weight_sync_delay=20)
    before = weights_of(built.training.local)
    built.update()
    sync.here(fragment(0, 19))
    assert weights_of(built.training.local) == before
    sync.here(fragment(0, 1))
    assert weights_of(built.training.local) != before
    assert metrics.counters["num_weight_syncs"] == 1


def test_a_worker_made_anew_begins_with_the_newest_snapshot(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    sync = UpdateWorkerWeights(built.learner, built.workers, max_weight_sync_delay=1)
    built.update()
    sync((built.workers.actors()[0], fragment(1, 1)))
    lost = built.workers.actors()[2]
    sync((lost, fragment(3, 0)))
    built.backend.kill(lost)
    rollouts = ParallelRollouts(built.workers, mode="async")
    while metrics.counters["num_workers_lost"] == 0:
        rollouts.pull()
    for _ in range(6):
        rollouts.pull()
    hashes = built.of_workers(weights_of)
    assert hashes[2] == hashes[0] != hashes[1]
    assert built.of_workers(epsilon_of)[2] == worker_epsilon(3, 3)
    syncs = metrics.counters["num_weight_syncs"]
    sync((built.workers.actors()[2], fragment(3, 50)))
    assert metrics.counters["num_weight_syncs"] == syncs, "it has them already"


def test_workers_priorities_are_their_own_errors(metrics: MetricsContext) -> None:
    judged, unjudged = Built(metrics), Built(metrics, config={"worker_side_prioritization": False})
    for built in (judged, unjudged):
        built.fill()
    assert all(len(np.unique(priorities)) > 20 for priorities in judged.of_shards(priorities_of))
    assert all((priorities == 1.0).all() for priorities in unjudged.of_shards(priorities_of))


def test_shards_divide_capacity_and_the_steps_before_learning_and_give_whole_batches(metrics: MetricsContext) -> None:
    built = Built(metrics)
    assert [stats.capacity for stats in built.of_shards(ReplayShard.stats)] == [400, 400]
    flow = ParallelReplay(built.shards, 16, FreeRunning(), num_async=4)
    store = ParallelRollouts(built.workers, mode="async").for_each(StoreToReplayActors(built.shards, FreeRunning(), 0))
    while flow.pull() is NOT_READY:
        assert max(stats.size for stats in built.of_shards(ReplayShard.stats)) < 50
        store.pull()
    assert 50 <= max(stats.size for stats in built.of_shards(ReplayShard.stats)) < 70
    replayed: Any = flow.pull()
    assert [batch.count for batch in replayed.batches] == [16] * replayed.sampled.batches
    assert replayed.count == 16 * replayed.sampled.batches


def test_only_what_a_warm_shard_gets_earns_credit(metrics: MetricsContext) -> None:
    built = Built(metrics)
    ledger = IntensityLedger(1.0, 16)
    store = ParallelRollouts(built.workers, mode="async").for_each(StoreToReplayActors(built.shards, ledger, 0))
    earned = 0
    for _ in range(12):
        before = [stats.size for stats in built.of_shards(ReplayShard.stats)]
        store.pull()
        after = [stats.size for stats in built.of_shards(ReplayShard.stats)]
        (got,) = [new for old, new in zip(before, after, strict=True) if new != old]
        earned += 20 if got >= 50 else 0
        assert ledger.credit == earned
    assert 0 < earned < 12 * 20


def test_what_is_in_the_learners_queue_is_kept_where_nothing_else_keeps_it(metrics: MetricsContext) -> None:
    one, other = Built(metrics), Built(metrics)
    one.fill()
    one.update()
    for _ in range(3):
        actor, replayed = one.replay()
        assert one.learner.put(actor.index, replayed)
    other.learner.set_state(one.learner.get_state())
    updates = [(one.learner.take(), other.learner.take()) for _ in range(3)]
    for mine, theirs in updates:
        assert isinstance(mine, Update)
        assert isinstance(theirs, Update)
        assert (mine.shard, mine.incarnation, mine.learnt[0].stats) == (
            theirs.shard,
            theirs.incarnation,
            theirs.learnt[0].stats,
        )
    assert one.learner.take() is other.learner.take() is NOT_READY
    assert one.learner.updates == other.learner.updates == 4
    assert content_hash(one.learner.get_state()) == content_hash(other.learner.get_state())


def test_fragments_are_spread_over_shards_whichever_worker_they_are_of(metrics: MetricsContext) -> None:
    built = Built(metrics, rollouts={"replicas": 2})
    store = ParallelRollouts(built.workers, mode="async").for_each(StoreToReplayActors(built.shards, FreeRunning(), 0))
    for _ in range(40):
        store.pull()
    sizes = [stats.added for stats in built.of_shards(ReplayShard.stats)]
    assert sum(sizes) == 40 * 20
    assert min(sizes) >= 200


@pytest.mark.parametrize("mode", ["round_robin", "async"])
def test_a_cold_replay_never_stops_the_store_that_would_warm_it(mode: str, metrics: MetricsContext) -> None:
    built = Built(metrics, APEX if mode == "round_robin" else APEX_CLASSIC)
    for _ in range(400):
        assert built.training.flow.pull() is not NOT_READY
    assert metrics.counters[STEPS_TRAINED] > 0


@pytest.mark.parametrize("intensity", [0.37, 7.3])
def test_trained_steps_keep_to_the_intensity_over_a_thousand_iterations_and_a_lost_worker(
    intensity: float, metrics: MetricsContext
) -> None:
    fewer = {"num_envs_per_worker": 1, "train_batch_size": 64, "learning_starts": 128}
    built = Built(metrics, config={"training_intensity": intensity, **fewer})
    stored = warm_at = 0
    while stored < 1000:
        assert built.training.flow.pull() is not NOT_READY
        stored = metrics.counters["num_fragments_stored"]
        if stored == 500 and not metrics.counters["num_workers_lost"]:
            built.backend.kill(built.workers.actors()[1])
        if not warm_at and built.shards.warm.actors():
            warm_at = metrics.counters[STEPS_SAMPLED]
    assert metrics.counters["num_workers_lost"] == 1
    # Until both shards are warm not every fragment earns.
    sampled = metrics.counters[STEPS_SAMPLED] - warm_at
    assert metrics.counters[STEPS_TRAINED] / sampled == pytest.approx(intensity, rel=0.02)


def test_sampling_waits_while_training_is_behind_unless_no_shard_is_warm(metrics: MetricsContext) -> None:
    built = Built(metrics, config={"training_intensity": 20.0})
    ledger = built.training.context.kept["ledger"]
    while not ledger.due:
        built.training.flow.pull()
    assert ledger.behind
    sampled = metrics.counters[STEPS_SAMPLED]
    while ledger.behind:
        built.training.flow.pull()
    assert metrics.counters[STEPS_SAMPLED] == sampled
    assert metrics.counters[STEPS_TRAINED] >= 20 * 20 - 2 * 16 - 16 * IN_QUEUE


def test_a_full_in_queue_keeps_the_batch_and_offers_it_again(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    flow = ParallelReplay(built.shards, 16, FreeRunning(), num_async=1)
    enqueue = flow.zip_with_source_actor().for_each(Enqueue(built.learner))
    calls, together = IN_QUEUE // FreeRunning.together, FreeRunning.together
    pulled = [enqueue.pull() for _ in range(calls + 3)]
    assert pulled == [PROGRESS] * calls + [NOT_READY] * 3
    drawn = sum(stats.sampled for stats in built.of_shards(ReplayShard.stats))
    assert drawn == 16 * together * (calls + 1), "those of one call are kept, none is drawn for nothing"
    assert list(built.learner.sizes.values) == [call * together for call in range(calls)], "of batches, not calls"
    assert not enqueue.waits(), "the learner is what it waits for"
    assert isinstance(Dequeue(built.learner).pull(), Update)
    assert enqueue.pull() is PROGRESS
    assert sum(stats.sampled for stats in built.of_shards(ReplayShard.stats)) == drawn


def test_updates_come_out_in_order_and_bring_priorities_to_the_shard_of_their_batch(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    built.update()  # or the learner would judge exactly as the workers have
    before = built.of_shards(priorities_of)
    actor, replayed = built.replay()
    built.learner.put(actor.index, replayed)
    update_op = Dequeue(built.learner).for_each(UpdatePrioritiesAndStats(built.shards, FreeRunning(), prioritized=True))
    assert isinstance(update_op.pull(), Update)
    assert update_op.pull() is NOT_READY
    after = built.of_shards(priorities_of)
    changed = [int(np.count_nonzero(new != old)) for new, old in zip(after, before, strict=True)]
    assert changed[actor.index - 1] == len(np.unique(replayed.batches[0]["batch_indexes"]))
    assert changed[2 - actor.index] == 0
    assert metrics.counters[STEPS_TRAINED] == metrics.counters["num_env_steps_trained_this_iter"] == 16
    assert {"learner_dequeue", "learner_grad", "learner_overall"} <= metrics.timers.keys()
    assert "loss" in metrics.info["learner"]


def test_priorities_of_a_shard_that_was_made_anew_meanwhile_change_nothing(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    actor, replayed = built.replay()
    old = replace(replayed, sampled=replace(replayed.sampled, incarnation=7))
    built.learner.put(actor.index, old)
    before = built.of_shards(priorities_of)
    Dequeue(built.learner).for_each(UpdatePrioritiesAndStats(built.shards, FreeRunning(), prioritized=True)).pull()
    assert all((new == old).all() for new, old in zip(built.of_shards(priorities_of), before, strict=True))


def test_a_lost_batch_is_counted_and_its_price_given_back(metrics: MetricsContext) -> None:
    built = Built(metrics)
    ledger = IntensityLedger(1.0, 16)
    ledger.earn(20)
    ledger.spend(16)
    op = UpdatePrioritiesAndStats(built.shards, ledger, prioritized=True)
    assert op(LostBatch(16)) is PROGRESS
    assert metrics.counters[BATCHES_LOST] == 1
    assert metrics.counters[STEPS_TRAINED] == 0
    assert ledger.credit == 20


def test_the_target_follows_trained_steps(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    update: Any = UpdateTargetNetwork(built.learner, 100, by_steps_trained=True)
    metrics.counters[STEPS_SAMPLED] = 10_000
    policy = built.learner.get_state()["policy"]
    start = content_hash(policy["target"])
    for _ in range(7):
        metrics.counters[STEPS_TRAINED] += sum(learnt.count for learnt in built.update().learnt)
        update(None)
        state = built.learner.get_state()["policy"]
        moved = content_hash(state["target"]) != start
        assert moved == (metrics.counters[STEPS_TRAINED] >= 100)
    assert content_hash(state["target"]) == content_hash(state["weights"])
    assert metrics.counters["num_target_updates"] == 1
    assert metrics.counters["last_target_update_step"] == 112


def test_results_tell_of_exploration_queue_learner_and_shards(metrics: MetricsContext) -> None:
    for debug, shards in ((False, ["replay_shard_0"]), (True, ["replay_shard_0", "replay_shard_1"])):
        optimizer = {**APEX["config"]["optimizer"], "debug": debug}
        built = Built(metrics, config={"optimizer": optimizer})
        item: Any = None
        while not isinstance(item, Result):
            item = built.training.flow.pull()
        epsilons = [each["epsilon"] for each in item.info["exploration_infos"]]
        assert epsilons == [0.0, *(worker_epsilon(index, 3) for index in (1, 2, 3))]
        assert {"size_mean", "size_std", "size_quantiles", "size_count"} == item.info["learner_queue"].keys()
        assert {"loss", "mean_q"} <= item.info["learner"].keys()
        assert [name for name in item.info if name.startswith("replay_shard")] == shards
        assert item.info["replay_shard_0"]["capacity"] == 400
        assert item.counters["num_weight_syncs"] > 0


def test_what_a_shard_refuses_ends_training_by_its_own_words(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    actor, replayed = built.replay()
    bad = replayed.batches[0].with_columns(rewards=np.full(16, np.nan, np.float32))
    built.learner.put(actor.index, Replayed(Sampled(16, 0, 100), (bad,)))
    op = Dequeue(built.learner).for_each(UpdatePrioritiesAndStats(built.shards, FreeRunning(), prioritized=True))
    with pytest.raises(TrainingFailed, match=rf"replay shard {actor.index}: the TD error at index 0 .* is nan"):
        op.pull()


def test_batches_given_at_once_are_an_update_each(metrics: MetricsContext) -> None:
    built = Built(metrics)
    built.fill()
    built.update()
    updates = built.learner.updates
    item: Any = ParallelReplay(built.shards, 16, FreeRunning(), num_async=1).zip_with_source_actor().pull()
    actor, replayed = item
    assert replayed.sampled.batches == FreeRunning.together
    drawn = {tuple(batch["batch_indexes"].tolist()) for batch in replayed.batches}
    assert len(drawn) == FreeRunning.together, "each is drawn by itself"
    step = float(built.learner.get_state()["policy"]["optimizer"]["step"])
    before = built.of_shards(priorities_of)[actor.index - 1]
    assert built.learner.put(actor.index, replayed)
    trained = metrics.counters[STEPS_TRAINED]
    op = Dequeue(built.learner).for_each(UpdatePrioritiesAndStats(built.shards, FreeRunning(), prioritized=True))
    update: Any = op.pull()
    assert [learnt.count for learnt in update.learnt] == [16] * FreeRunning.together
    assert metrics.counters[STEPS_TRAINED] - trained == 16 * FreeRunning.together
    assert built.learner.updates - updates == FreeRunning.together
    assert float(built.learner.get_state()["policy"]["optimizer"]["step"]) - step == FreeRunning.together
    slots = np.unique(np.concatenate([batch["batch_indexes"] for batch in replayed.batches]))
    after = built.of_shards(priorities_of)[actor.index - 1]
    assert np.flatnonzero(before != after).tolist() == slots.tolist(), "those of every batch come back"
