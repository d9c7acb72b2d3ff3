"""Buffers of several policies: what is drawn with what."""

import numpy as np
import pytest

from rltrain.api.errors import CheckpointMismatch
from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.multi_agent import IndependentBuffers, LockstepBuffer
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import MultiAgentBatch


def batch(first: int, count: int) -> MultiAgentBatch:
    """Env steps `first`...: two agents have policy a, in each of them; one has b, in the even ones. OBS is the step."""
    steps = np.arange(count)
    even = steps[(first + steps) % 2 == 0]
    return MultiAgentBatch(
        {"a": rows(first, np.tile(steps, 2), agent=np.repeat([0, 1], count)), "b": rows(first, even)}, count
    )


def rows(first: int, steps: np.ndarray, agent: np.ndarray | int = 0) -> Batch:
    return Batch({c.OBS: (first + steps).astype(np.float32), c.ACTIONS: steps * 0 + agent, c.ENV_STEP: steps})


def independent(learning_starts: int = 0, capacity: int = 100) -> IndependentBuffers:
    return IndependentBuffers({name: ReplayBuffer(capacity, seed=ord(name)) for name in "ab"}, learning_starts)


def lockstep(learning_starts: int = 0, capacity: int = 100, seed: int = 0) -> LockstepBuffer:
    return LockstepBuffer(capacity, {"a": 2, "b": 1}, learning_starts, seed)


def test_in_lockstep_all_policies_have_the_rows_of_the_same_env_steps() -> None:
    buffer = lockstep()
    buffer.add(batch(0, 40))
    drawn = buffer.sample(16)
    assert drawn is not None
    assert drawn.count == drawn.steps == 16
    a, b = drawn.policies["a"], drawn.policies["b"]
    steps = a[c.OBS].reshape(16, 2)
    np.testing.assert_array_equal(steps[:, 0], steps[:, 1])
    np.testing.assert_array_equal(a[c.ACTIONS].reshape(16, 2), np.tile([0, 1], (16, 1)))
    np.testing.assert_array_equal(b[c.OBS], steps[:, 0][steps[:, 0] % 2 == 0])
    assert len(set(steps[:, 0])) > 8


def test_independent_policies_draw_a_whole_batch_each_of_any_steps() -> None:
    buffer = independent()
    buffer.add(batch(0, 40))
    drawn = buffer.sample(16)
    assert drawn is not None
    assert {name: rows.count for name, rows in drawn.policies.items()} == {"a": 16, "b": 16}
    assert drawn.count == 16
    assert set(drawn.policies["a"][c.OBS]) != set(drawn.policies["b"][c.OBS])
    np.testing.assert_array_equal(drawn.policies["b"][c.OBS] % 2, 0)


def test_a_policy_without_a_whole_batch_is_left_out_until_it_has_one() -> None:
    buffer = independent()
    buffer.add(batch(0, 10))
    drawn = buffer.sample(8)
    assert drawn is not None
    assert list(drawn.policies) == ["a"]
    buffer.add(batch(10, 10))
    drawn = buffer.sample(8)
    assert drawn is not None
    assert list(drawn.policies) == ["a", "b"]
    assert independent().sample(1) is None


@pytest.mark.parametrize("make", [independent, lockstep])
def test_learning_starts_after_env_steps_not_rows(make: object) -> None:
    buffer = make(learning_starts=20)  # type: ignore[operator]
    buffer.add(batch(0, 19))
    assert not buffer.warm
    assert buffer.sample(4) is None
    assert len(buffer) == 19
    buffer.add(batch(19, 1))
    assert buffer.warm
    assert buffer.sample(4) is not None
    assert len(buffer) == 20


def test_priorities_go_to_the_rows_of_their_own_policy() -> None:
    buffer = independent()
    buffer.add(batch(0, 80))
    drawn = buffer.sample(32)
    assert drawn is not None
    errors = {"b": np.where(drawn.policies["b"][c.OBS] == drawn.policies["b"][c.OBS][0], 1e6, 0.0)}
    assert buffer.update_priorities(drawn[c.BATCH_INDEXES], drawn[c.GENERATIONS], errors) == 0
    again = buffer.sample(32)
    assert again is not None
    chosen = again.policies["b"][c.OBS] == drawn.policies["b"][c.OBS][0]
    assert chosen.mean() > 0.9
    assert len(set(again.policies["a"][c.OBS])) > 10, "of the other policy nothing has changed"


def test_first_priorities_are_taken_by_policy() -> None:
    buffer = independent()
    errors = {"a": np.zeros(80), "b": np.r_[1e6, np.zeros(19)]}
    buffer.add(batch(0, 40), errors)
    drawn = buffer.sample(16)
    assert drawn is not None
    assert (drawn.policies["b"][c.OBS] == 0).mean() > 0.9
    assert len(set(drawn.policies["a"][c.OBS])) > 5


def test_stale_priorities_are_counted_over_all_policies() -> None:
    buffer = independent(capacity=20)
    buffer.add(batch(0, 20))
    drawn = buffer.sample(8)
    assert drawn is not None
    buffer.add(batch(20, 60))
    errors = {name: np.ones(8) for name in "ab"}
    assert buffer.update_priorities(drawn[c.BATCH_INDEXES], drawn[c.GENERATIONS], errors) == 16
    assert buffer.stats().stale_updates == 16


def test_the_oldest_env_steps_make_room_in_lockstep() -> None:
    buffer = lockstep(capacity=7)
    for first, count in ((0, 5), (5, 4), (9, 1), (10, 20), (30, 3)):
        buffer.add(batch(first, count))
        held = set(range(max(first + count - 7, 0), first + count))
        seen: dict[str, set[float]] = {"a": set(), "b": set()}
        for _ in range(40):
            drawn = buffer.sample(min(len(buffer), 5))
            assert drawn is not None
            assert drawn.policies["a"].count == 2 * drawn.count
            for name, its in drawn.policies.items():
                seen[name] |= set(its[c.OBS].tolist())
        assert seen == {"a": held, "b": {step for step in held if step % 2 == 0}}


@pytest.mark.parametrize("make", [independent, lockstep])
def test_a_restored_buffer_draws_what_the_first_one_draws(make: object) -> None:
    first, second = make(capacity=30), make(capacity=30)  # type: ignore[operator]
    for start in range(0, 60, 7):
        first.add(batch(start, 7))
    first.sample(4)
    second.set_state(first.get_state())
    assert first.content_hash() == second.content_hash()
    for buffer in (first, second):
        buffer.add(batch(63, 5))
    one, other = first.sample(9), second.sample(9)
    for name in one.policies:
        np.testing.assert_array_equal(one.policies[name][c.OBS], other.policies[name][c.OBS])
    assert first.content_hash() == second.content_hash()


def test_a_state_of_another_kind_or_of_other_policies_is_refused() -> None:
    with pytest.raises(CheckpointMismatch, match="replay_mode"):
        lockstep().set_state(independent().get_state())
    with pytest.raises(CheckpointMismatch, match="replay_mode"):
        independent().set_state(lockstep().get_state())
    other = IndependentBuffers({"a": ReplayBuffer(100)}, 0)
    with pytest.raises(CheckpointMismatch, match="of the policies a, b, this one of a"):
        other.set_state(independent().get_state())
    with pytest.raises(CheckpointMismatch, match="agents"):
        LockstepBuffer(100, {"a": 3, "b": 1}).set_state(lockstep().get_state())
    with pytest.raises(CheckpointMismatch, match="buffer_size"):
        lockstep(capacity=50).set_state(lockstep().get_state())


def test_env_steps_of_batches_that_are_put_together_follow_one_another() -> None:
    joined = MultiAgentBatch.concat([batch(0, 4), batch(4, 6)])
    assert joined.count == 10
    for rows_ in joined.policies.values():
        np.testing.assert_array_equal(rows_[c.ENV_STEP], rows_[c.OBS])
