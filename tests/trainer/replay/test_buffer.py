"""Prioritised replay: warm-up, weights, refusals, stale updates and resumes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.api.errors import CheckpointMismatch, TrainingFailed
from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import BATCH_INDEXES, GENERATIONS, OBS, REWARDS, WEIGHTS


def rows(start: int, count: int) -> Batch:
    ids = np.arange(start, start + count)
    return Batch({OBS: np.stack([ids, ids * 2], axis=1).astype(np.float32), REWARDS: ids.astype(np.float32)})


def filled(capacity: int = 8, count: int = 8, **options: float) -> ReplayBuffer:
    buffer = ReplayBuffer(capacity, seed=1, **options)  # type: ignore[arg-type]
    buffer.add(rows(0, count))
    return buffer


def drawn(buffer: ReplayBuffer, count: int) -> Batch:
    batch = buffer.sample(count)
    assert batch is not None
    return batch


def set_td(buffer: ReplayBuffer, td_error: list[float]) -> int:
    slots = np.arange(len(td_error))
    return buffer.update_priorities(slots, np.ones(len(slots), np.int64), np.array(td_error))


def test_a_buffer_below_learning_starts_or_the_batch_asked_for_is_not_ready() -> None:
    buffer = ReplayBuffer(100, learning_starts=8)
    assert buffer.sample(4) is None
    buffer.add(rows(0, 7))
    assert buffer.sample(4) is None
    buffer.add(rows(7, 1))
    assert drawn(buffer, 4).count == 4
    assert buffer.sample(32) is None, "8 transitions are warm but no batch of 32"
    buffer.add(rows(8, 24))
    assert drawn(buffer, 32).count == 32


def test_non_finite_td_errors_are_refused_by_buffer_index_and_slot_and_change_nothing() -> None:
    buffer = ReplayBuffer(8, name="replay shard 3")
    buffer.add(rows(0, 8))
    before = buffer.content_hash()
    with pytest.raises(TrainingFailed, match=r"replay shard 3: the TD error at index 1 \(slot 1\) is nan"):
        set_td(buffer, [1, np.nan, np.inf, 0])
    with pytest.raises(TrainingFailed, match=r"index 2 \(slot 2\) is inf"):
        set_td(buffer, [1, 1, np.inf, 0])
    assert buffer.content_hash() == before


def test_a_td_error_of_zero_keeps_the_chance_that_eps_gives_it() -> None:
    buffer = filled(capacity=2, count=2, eps=0.5, alpha=0.5)
    set_td(buffer, [0.0, 1.0])
    assert buffer.get_state()["priorities"].tolist() == [0.5**0.5, 1.5**0.5]


def test_the_sign_of_a_td_error_does_not_matter() -> None:
    buffer = filled(capacity=2, count=2)
    set_td(buffer, [-3.0, 3.0])
    first, second = buffer.get_state()["priorities"]
    assert first == second == pytest.approx((3 + 1e-6) ** 0.6)


def test_new_transitions_get_the_largest_priority_ever_set() -> None:
    buffer = filled(capacity=8, count=4)
    set_td(buffer, [100.0, 1.0])
    set_td(buffer, [0.1, 0.1])
    buffer.add(rows(4, 1))
    assert buffer.get_state()["priorities"][4] == pytest.approx((100 + 1e-6) ** 0.6)


def test_td_errors_given_with_new_transitions_are_their_priorities() -> None:
    buffer = ReplayBuffer(8, alpha=1.0, eps=1e-6)
    buffer.add(rows(0, 3), td_error=np.array([1.0, -2.0, 0.0]))
    np.testing.assert_allclose(buffer.get_state()["priorities"], [1 + 1e-6, 2 + 1e-6, 1e-6])


def test_weights_are_relative_to_the_largest_of_the_whole_buffer_not_of_the_batch() -> None:
    buffer = filled(capacity=8, count=8, alpha=1.0, beta=0.5, eps=1e-9)
    set_td(buffer, [1e-4, 1, 1, 1, 1, 1, 1, 1])
    for _ in range(20):
        batch = drawn(buffer, 4)
        expected = np.where(batch[BATCH_INDEXES] == 0, 1.0, 1e-4**0.5)
        np.testing.assert_allclose(batch[WEIGHTS], expected, rtol=1e-3)
    assert batch[WEIGHTS].dtype == np.float32


def test_weights_follow_the_paper_s_formula() -> None:
    buffer = filled(capacity=5, count=5, alpha=0.6, beta=0.4)
    set_td(buffer, [0.1, 1.0, 5.0, 2.0, 0.5])
    priorities = buffer.get_state()["priorities"]
    weights = (5 * priorities / priorities.sum()) ** -0.4
    batch = drawn(buffer, 5)
    np.testing.assert_allclose(batch[WEIGHTS], (weights / weights.max())[batch[BATCH_INDEXES]], rtol=1e-6)


def test_transitions_are_drawn_in_proportion_to_their_priorities() -> None:
    buffer = filled(capacity=4, count=4, alpha=1.0)
    set_td(buffer, [1.0, 2.0, 3.0, 4.0])
    counts = np.zeros(4)
    for _ in range(1000):
        np.add.at(counts, drawn(buffer, 4)[BATCH_INDEXES], 1)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.2, 0.3, 0.4], atol=0.01)


def test_uniform_replay_draws_all_alike_with_weights_of_one() -> None:
    buffer = filled(capacity=4, count=4, prioritized=False)
    counts = np.zeros(4)
    for _ in range(2000):
        batch = drawn(buffer, 4)
        np.add.at(counts, batch[BATCH_INDEXES], 1)
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=0.02)
    assert (batch[WEIGHTS] == 1).all()
    assert set_td(buffer, [1.0]) == 0


def test_updates_of_overwritten_slots_are_dropped_and_counted() -> None:
    buffer = filled(capacity=4, count=4)
    batch = drawn(buffer, 4)
    buffer.add(rows(4, 2))
    before = buffer.get_state()["priorities"]
    stale = np.count_nonzero(batch[BATCH_INDEXES] < 2)
    assert buffer.update_priorities(batch[BATCH_INDEXES], batch[GENERATIONS], np.full(4, 9.0)) == stale
    assert buffer.stats().stale_updates == stale
    np.testing.assert_array_equal(buffer.get_state()["priorities"][:2], before[:2])


def test_slots_outside_the_buffer_are_refused() -> None:
    with pytest.raises(TrainingFailed, match=r"outside 0\.\.7"):
        filled().update_priorities(np.array([8]), np.array([1]), np.array([1.0]))


def test_the_oldest_transitions_are_overwritten_across_the_end_of_the_ring() -> None:
    buffer = filled(capacity=5, count=4)
    buffer.add(rows(4, 3))
    assert sorted(buffer.get_state()["columns"][REWARDS].tolist()) == [2, 3, 4, 5, 6]
    buffer.add(rows(10, 12))
    assert sorted(buffer.get_state()["columns"][REWARDS].tolist()) == [17, 18, 19, 20, 21]
    assert buffer.stats().added == 19


def test_rows_keep_their_columns_together() -> None:
    buffer = filled(capacity=7, count=7)
    buffer.add(rows(7, 4))
    batch = drawn(buffer, 7)
    np.testing.assert_array_equal(batch[OBS], np.stack([batch[REWARDS], batch[REWARDS] * 2], axis=1))
    assert batch[OBS].dtype == np.float32


def test_a_batch_of_other_columns_or_dtypes_is_refused_by_column() -> None:
    buffer = filled()
    with pytest.raises(TrainingFailed, match="columns"):
        buffer.add(Batch({OBS: np.zeros((1, 2), np.float32)}))
    with pytest.raises(TrainingFailed, match="'rewards' is float64"):
        buffer.add(Batch({OBS: np.zeros((1, 2), np.float32), REWARDS: np.zeros(1)}))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 70), st.lists(st.integers(0, 90), min_size=1, max_size=5), st.booleans(), st.data())
def test_a_restored_buffer_goes_on_exactly_as_the_saved_one(
    capacity: int, counts: list[int], prioritized: bool, data: st.DataObject
) -> None:
    buffer = ReplayBuffer(capacity, prioritized=prioritized, seed=3)
    for count in counts:
        buffer.add(rows(0, count))
        batch = buffer.sample(1)
        if batch is not None:
            td_error = np.array([data.draw(st.floats(-1e3, 1e3))])
            buffer.update_priorities(batch[BATCH_INDEXES], batch[GENERATIONS], td_error)
    copy = ReplayBuffer(capacity, prioritized=prioritized, seed=99)
    copy.set_state(buffer.get_state())
    assert copy.content_hash() == buffer.content_hash()
    for each in (buffer, copy):
        each.add(rows(100, 3))
        each.sample(1)
    assert copy.content_hash() == buffer.content_hash()


def test_a_state_is_a_copy_that_later_writes_do_not_change() -> None:
    buffer = filled()
    state = buffer.get_state()
    buffer.add(rows(50, 8))
    set_td(buffer, [4.0])
    fresh = ReplayBuffer(8)
    fresh.set_state(state)
    assert sorted(fresh.get_state()["columns"][REWARDS].tolist()) == list(range(8))


def test_a_state_of_another_capacity_or_kind_is_refused_with_the_remedy() -> None:
    state = filled().get_state()
    with pytest.raises(CheckpointMismatch, match="holds 8 transitions, this one 9: set buffer_size"):
        ReplayBuffer(9).set_state(state)
    with pytest.raises(CheckpointMismatch, match="prioritized_replay"):
        ReplayBuffer(8, prioritized=False).set_state(state)
    with pytest.raises(CheckpointMismatch, match="counters"):
        ReplayBuffer(8).set_state({**state, "size": 5})
    with pytest.raises(CheckpointMismatch, match="positive"):
        ReplayBuffer(8).set_state({**state, "priorities": np.full(8, np.nan)})
