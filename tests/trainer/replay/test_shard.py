"""A shard's batches and the priorities that come back for them, across its incarnations."""

import numpy as np

from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.shard import Experience, PriorityUpdate, ReplayShard, Sampled
from rltrain.rollout.batch import Batch


def shard(incarnation: int = 0, seed: int = 0) -> ReplayShard:
    return ReplayShard(ReplayBuffer(16, learning_starts=8, seed=seed), incarnation)


def experience(count: int, td_error: float | None = None) -> Experience:
    errors = None if td_error is None else np.full(count, td_error, np.float32)
    return Experience(Batch({"obs": np.arange(count, dtype=np.float32)}), errors)


def test_a_cold_shard_gives_no_batch_and_says_how_much_it_holds() -> None:
    made = shard(incarnation=2)
    assert made.add(experience(7)) == 7
    assert made.sample(4) == (Sampled(count=0, incarnation=2, size=7, batches=0), ())
    assert made.add(experience(1)) == 8
    told, batches = made.sample(4, 3)
    assert told == Sampled(count=12, incarnation=2, size=8, batches=3)
    assert [batch.count for batch in batches] == [4, 4, 4]


def test_priorities_given_by_a_worker_decide_what_is_sampled() -> None:
    made = shard()
    made.add(experience(8, td_error=0.0))
    made.add(Experience(Batch({"obs": np.full(8, 100.0, np.float32)}), np.full(8, 1e6, np.float32)))
    _, (batch,) = made.sample(8)
    assert (batch["obs"] == 100.0).all()


def test_priorities_for_another_incarnation_are_dropped_and_told() -> None:
    first, second = shard(incarnation=0), shard(incarnation=1)
    for each in (first, second):
        each.add(experience(16))
    told, (batch,) = first.sample(8)
    update = PriorityUpdate.of(batch, np.full(8, 5.0, np.float32))
    before = second.buffer.content_hash()
    assert second.update_priorities(told.incarnation, [update]) == 8
    assert second.buffer.content_hash() == before
    assert first.update_priorities(told.incarnation, [update]) == 0
    assert first.buffer.content_hash() != before


def test_state_is_the_buffers() -> None:
    one, other = shard(seed=3), shard(seed=4)
    one.add(experience(12))
    other.set_state(one.get_state())
    assert other.buffer.content_hash() == one.buffer.content_hash()
    assert other.stats() == one.stats()
