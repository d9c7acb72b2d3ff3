"""Sequences: each step learnt once, of one episode, after its own burn-in and from its own state."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.api.config import R2D2Config, RecurrentModelConfig
from rltrain.api.errors import CheckpointMismatch
from rltrain.replay.make import make_buffer
from rltrain.replay.sequences import SequenceBuffer, SequenceShape, Slicer
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch

GAMMA = 0.9
END = ("terminated", "truncated", "open")


def episode(number: int, length: int, end: str = "terminated", env: int = 0, worker: int = 0) -> Batch:
    """Observation [episode, t], next observation [episode, t + 1], state and reward of the same numbers."""
    t = np.arange(length)
    ended = t == length - 1
    terminated = ended & (end == "terminated")
    return Batch(
        {
            c.OBS: np.stack([np.full(length, number), t], axis=1).astype(np.float32),
            c.NEXT_OBS: np.stack([np.full(length, number), t + 1], axis=1).astype(np.float32),
            c.ACTIONS: 1000 * number + t,
            c.REWARDS: (1000 * number + t).astype(np.float32),
            c.DISCOUNTS: np.where(terminated, 0, GAMMA).astype(np.float32),
            c.TERMINATEDS: terminated,
            c.TRUNCATEDS: ended & (end == "truncated"),
            c.EPS_ID: np.full(length, worker * c.EPISODES_PER_WORKER + number),
            c.T: t,
            c.ENV_ID: np.full(length, env),
            c.STATE: np.stack([np.full(length, number), t], axis=1).astype(np.float32),
        }
    )


def cut(shape: SequenceShape, batches: Sequence[Batch]) -> list[dict[str, Any]]:
    """All sequences of some batches, each as its columns."""
    slicer = Slicer(shape)
    found = [sequences for batch in batches if (sequences := slicer.cut(batch)) is not None]
    return [{name: column[row] for name, column in each.columns.items()} for each in found for row in range(len(each))]


def fragments(stream: Batch, sizes: Sequence[int]) -> list[Batch]:
    """A stream of rows in pieces of these sizes, over and over."""
    pieces: list[Batch] = []
    at = 0
    while at < stream.count:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream.slice(at, at + size))
        at += size
    return pieces


ends = st.lists(st.tuples(st.integers(1, 23), st.sampled_from(END[:2])), min_size=1, max_size=6)
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(deadline=None)
@given(ends, sizes, st.integers(0, 9), st.integers(1, 6), st.integers(1, 3))
def test_any_episodes_in_any_fragments_are_learnt_step_by_step(
    lengths: list[tuple[int, str]], size: list[int], burn_in: int, learnt: int, envs: int
) -> None:
    shape = SequenceShape(burn_in, learnt, states=True)
    episodes = [
        episode(number, length, end, env=number % envs, worker=number % 2)
        for number, (length, end) in enumerate(lengths)
    ]
    # Environments advance together: their fragments come in turns, as batches of several do.
    streams = {
        (env, worker): [each for number, each in enumerate(episodes) if (number % envs, number % 2) == (env, worker)]
        for env in range(envs)
        for worker in range(2)
    }
    queues = [fragments(Batch.concat(stream), size) for stream in streams.values() if stream]
    rounds = [
        Batch.concat([queue[turn] for queue in queues if turn < len(queue)]) for turn in range(max(map(len, queues)))
    ]
    seen: list[int] = []
    for each in cut(shape, rounds):
        start, count = int(each[c.START]), int(each[c.SEQ_LENS])
        assert 1 <= count <= learnt
        seen += each[c.ACTIONS][:count].tolist()
        number, t = divmod(int(each[c.ACTIONS][0]), 1000)
        # As much burn-in as the episode has, right before the learnt steps, and nothing of another episode.
        assert burn_in - start == min(t, burn_in)
        assert each[c.OBS].shape == (burn_in + learnt + 1, 2)
        observations = each[c.OBS][start : burn_in + count + 1]
        assert (observations[:, 0] == number).all()
        # Each action's target is at the observation after it: row t + 1 holds the next one, after the last step too.
        assert observations[:, 1].tolist() == list(range(t - (burn_in - start), t + count + 1))
        assert (each[c.OBS][:start] == 0).all()
        assert (each[c.OBS][burn_in + count + 1 :] == 0).all()
        assert each[c.STATE].tolist() == [number, t - (burn_in - start)]
        length, end = lengths[number]
        bootstraps = [GAMMA] * count
        if t + count == length and end == "terminated":
            bootstraps[-1] = 0
        np.testing.assert_allclose(each[c.DISCOUNTS][:count], bootstraps)
        np.testing.assert_array_equal(each[c.REWARDS][:count], each[c.ACTIONS][:count])
        assert not each[c.ACTIONS][count:].any()
    assert sorted(seen) == sorted(
        1000 * number + t for number, (length, _) in enumerate(lengths) for t in range(length)
    )


def test_a_step_waits_until_its_sequence_is_whole_or_its_episode_over() -> None:
    slicer = Slicer(SequenceShape(burn_in=2, learnt=3))
    rows = episode(0, 8)
    assert slicer.cut(rows.slice(0, 2)) is None
    first = slicer.cut(rows.slice(2, 7))
    assert first is not None
    assert first[c.SEQ_LENS].tolist() == [3, 3]
    last = slicer.cut(rows.slice(7, 8))
    assert last is not None
    assert last[c.SEQ_LENS].tolist() == [2]


def test_what_a_lost_worker_left_unfinished_is_dropped() -> None:
    rows, shape = episode(0, 6), SequenceShape(burn_in=1, learnt=4)
    # The worker is made again and numbers its episodes from the first one on; then one with a gap.
    again = cut(shape, [rows.slice(0, 2), rows.slice(0, 3), rows.slice(3, 6)])
    assert [each[c.ACTIONS].tolist() for each in again] == [[0, 1, 2, 3], [4, 5, 0, 0]]
    gap = cut(shape, [rows.slice(0, 2), rows.slice(3, 6)])
    assert [each[c.ACTIONS].tolist() for each in gap] == [[3, 4, 5, 0]]
    other = cut(shape, [rows.slice(0, 2), episode(1, 2)])
    assert [each[c.ACTIONS].tolist() for each in other] == [[1000, 1001, 0, 0]]


def config(**changes: Any) -> R2D2Config:
    options = {"train_batch_size": 20, "buffer_size": 8, "learning_starts": 9, "burn_in": 2, "zero_init_states": False}
    return R2D2Config(policy="R2D2", model=RecurrentModelConfig(max_seq_len=3), **{**options, **changes})


def buffer_of(*lengths: int, **changes: Any) -> SequenceBuffer:
    buffer = make_buffer(config(**changes), seed=0)
    assert isinstance(buffer, SequenceBuffer)
    for number, length in enumerate(lengths):
        buffer.add(episode(number, length))
    return buffer


def test_learning_starts_counts_learnt_steps_without_burn_in_and_padding() -> None:
    assert not buffer_of(1, 1, 1, 1, 4).warm
    assert buffer_of(1, 1, 1, 1, 5).warm


def test_a_batch_has_as_many_sequences_as_its_steps_have_room_for() -> None:
    batch = buffer_of(10, 10).sample(20)
    assert batch is not None
    assert batch.count == 4 == config().sequences_per_batch
    assert batch[c.BATCH_INDEXES].shape == batch[c.WEIGHTS].shape == (4,)
    assert batch.steps == batch[c.SEQ_LENS].sum()
    assert buffer_of(10, 10).sample(3).count == 1  # type: ignore[union-attr]


def test_capacity_counts_sequences_and_the_oldest_are_overwritten() -> None:
    buffer = buffer_of(*[7] * 10)
    assert (buffer.stats().size, buffer.stats().added) == (8, 30)
    sampled = buffer.sample(1000 * 5)
    assert sampled is None, "more sequences than there are"
    numbers = {int(number) for _ in range(50) for number in buffer.sample(20)[c.STATE][:, 0]}  # type: ignore[index]
    assert numbers <= {7, 8, 9}


def test_states_are_kept_only_where_sequences_begin_with_them() -> None:
    assert c.STATE not in buffer_of(10, 10, zero_init_states=True).sample(20)  # type: ignore[operator]
    assert buffer_of(10, 10).sample(20)[c.STATE].shape == (4, 2)  # type: ignore[index]


def test_a_sequence_has_one_priority_and_new_ones_the_largest() -> None:
    buffer = buffer_of(12, prioritized_replay=True, prioritized_replay_alpha=1.0)
    buffer.update_priorities(np.arange(4), np.ones(4, np.int64), np.array([9.0, 0.0, 0.0, 0.0]))
    buffer.add(episode(5, 3))
    leaves = buffer.get_state()["priorities"]
    np.testing.assert_allclose(leaves, [9, 0, 0, 0, 9], atol=1e-5)
    drawn = buffer.sample(20)
    assert drawn is not None
    assert set(drawn[c.BATCH_INDEXES].tolist()) == {0, 4}


@settings(deadline=None)
@given(st.integers(1, 30), st.booleans())
def test_a_restored_buffer_goes_on_with_its_open_episodes(at: int, prioritized: bool) -> None:
    rows = Batch.concat([episode(0, 14), episode(1, 20)])
    whole = buffer_of(10, prioritized_replay=prioritized)
    whole.add(rows.slice(0, at))
    parted = buffer_of(prioritized_replay=prioritized)
    parted.set_state(whole.get_state())
    for buffer in (whole, parted):
        buffer.add(rows.slice(at, 34))
    assert whole.content_hash() == parted.content_hash()
    one, other = whole.sample(20), parted.sample(20)
    assert one is not None
    assert other is not None
    assert all(np.array_equal(one[name], other[name]) for name in one.columns)


def test_sequences_of_another_shape_or_transitions_are_refused() -> None:
    state = buffer_of(10).get_state()
    with pytest.raises(CheckpointMismatch, match="set burn_in and model.max_seq_len as saved".replace(".", "[.]")):
        buffer_of(burn_in=1).set_state(state)
    del state["slicer"]
    with pytest.raises(CheckpointMismatch, match="holds transitions"):
        buffer_of().set_state(state)
