"""DD-PPO's stragglers: they stop at a part of their fragment, and unequal ranks learn as one."""

from collections.abc import Iterator
from typing import Any

import pytest

from rltrain.api.errors import TrainingFailed
from rltrain.flow import Backend, MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.parallel import Call, ParallelIterator
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend
from rltrain.ops import HurryStragglers, TrainRank, agree_on_minibatches
from rltrain.ops.ranks import Rank, Size
from rltrain.ops.rollouts import Fragment
from rltrain.runtime.build import Training
from rltrain.state import content_hash
from trainer.flow.backends import Counter, RayTeams, Team
from trainer.runtime.runs import DDPPO, job

LARGE: dict[str, Any] = {"rollout_fragment_length": 250, "sgd_minibatch_size": 50, "num_sgd_iter": 2}


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


@pytest.fixture(params=["serial", "ray"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "serial":
        return SerialBackend()
    made: Backend = request.getfixturevalue("ray_backend")
    return made


def gathered(backend: Backend, metrics: MetricsContext, **config: Any) -> Training:
    training = Training(job(DDPPO, config=config), backend, metrics)
    while len(training.workers.actors()) < training.workers.wanted:
        if pending := training.workers.pending():
            backend.wait(pending, 1.0)
        training.workers.refresh()
    return training


class Hold:
    """Keep only so many rows of a new sample, as the fragment to be learnt from."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, rank: Rank) -> int:
        batch = rank.sample()
        rank.held = Fragment(batch.slice(0, self.rows), ())
        count = rank.policy.minibatches_of(rank.held.batch)
        assert isinstance(count, int)
        return count


def learned_of(rank: Rank) -> str:
    return content_hash(rank.policy.learned_state())


def steps_of(rank: Rank) -> float:
    return float(rank.policy.learned_state()["optimizer"]["step"])


@pytest.mark.parametrize("rows", [(500, 350), (500, 0)])
def test_ranks_of_unequal_batches_agree_first_then_nobody_hangs_and_all_stay_identical(
    backend: Backend, metrics: MetricsContext, rows: tuple[int, int]
) -> None:
    ranks = gathered(backend, metrics, **LARGE).workers.actors()
    holds = [rank.apply(Hold(count)) for rank, count in zip(ranks, rows, strict=True)]
    minibatches = max(backend.result(held) for held in holds)
    assert minibatches == 10
    reports = [rank.apply(TrainRank(), minibatches) for rank in ranks]
    assert tuple(backend.result(report).count for report in reports) == rows
    assert len({backend.result(rank.apply(learned_of)) for rank in ranks}) == 1
    assert [backend.result(rank.apply(steps_of)) for rank in ranks] == [20, 20], "two epochs of ten minibatches"


def hurry(rank: Rank, iteration: int) -> None:
    rank.hurried = iteration


def test_a_hurried_rank_brings_a_quarter_and_the_ranks_go_on_as_one(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    training = gathered(ray_backend, metrics, sync_frac=0.5, rollout_fragment_length=50)
    ranks = training.workers.actors()
    ray_backend.result(ranks[0].control(hurry, 7))
    ray_backend.result(ranks[1].control(hurry, 0))
    while not metrics.counters[STEPS_TRAINED]:
        training.flow.tick(1.0)
    # Half of two are done as soon as one is, so the first may have been cut short as well, but not the other one more.
    assert 50 <= metrics.counters[STEPS_TRAINED] <= 126
    assert metrics.counters[STEPS_TRAINED] == metrics.counters[STEPS_SAMPLED]
    assert metrics.counters["num_fragments_cut_short"] >= 1
    while metrics.counters[STEPS_TRAINED] < 400:
        item = training.flow.tick(1.0)
        if not isinstance(item, Signal):
            assert len(set(item.rank_hashes or ["same"])) == 1
    assert len({ray_backend.result(rank.apply(learned_of)) for rank in ranks}) == 1


def test_a_rank_stops_only_in_the_iteration_it_was_hurried_in_and_never_below_a_quarter(
    metrics: MetricsContext,
) -> None:
    backend = SerialBackend()
    training = gathered(backend, metrics, sync_frac=0.5, rollout_fragment_length=50)
    rank = training.workers.actors()[0]

    def rows() -> int:
        count: int = backend.result(rank.apply(lambda each: each.sample().count))
        return count

    assert rows() == 100
    backend.result(rank.control(hurry, 1))
    assert rows() == 100, "that was meant for another iteration"
    backend.result(rank.control(hurry, 0))
    assert 25 <= rows() <= 26, "two environments take their steps together"
    backend.result(rank.control(hurry, 1))
    assert rows() == 100


def test_in_serial_mode_nobody_lags_behind(metrics: MetricsContext) -> None:
    training = gathered(SerialBackend(), metrics, sync_frac=0.5)
    while metrics.counters[STEPS_TRAINED] < 160:
        training.flow.tick(1.0)
    assert metrics.counters["num_fragments_cut_short"] == 0


def test_ranks_are_hurried_once_the_share_of_them_is_done() -> None:
    hasten, done = HurryStragglers(0.6), [Size(40, 4, iteration=3)]
    assert hasten(done, 5) is None
    assert hasten(done * 2, 5) is None
    told = hasten(done * 3, 5)
    assert told is not None
    assert HurryStragglers(1.0)(done * 4, 5) is None


def test_fragments_between_a_quarter_and_the_whole_are_agreed_on_and_others_refused(metrics: MetricsContext) -> None:
    agree = agree_on_minibatches(500, 125)
    assert agree([Size(500, 10), Size(350, 7), Size(125, 3)]) == 10
    assert metrics.counters["num_fragments_cut_short"] == 2
    for wrong in (124, 501):
        with pytest.raises(TrainingFailed, match=f"125 to 500 steps, but they bring .*{wrong}"):
            agree([Size(500, 10), Size(wrong, 3)])


def test_shards_that_an_agreement_waits_for_are_told_beside_their_work(
    ray_session: None, metrics: MetricsContext
) -> None:
    backend = RayTeams()
    team = Team(backend, 2)

    def source(actor: Any) -> Call:
        return Call(Counter.next) if actor.index == 1 else Call(Counter.wait_for_release)

    def hasten(done: Any, shards: int) -> Any:
        return Counter.release if len(done) == 1 and shards == 2 else None

    flow = ParallelIterator(team, source).agree(len, hasten=hasten).batch_across_shards()
    try:
        assert next(iter(flow)) == [2, 2], "the second would have waited for ever"
    finally:
        for actor in list(backend.actors):
            backend.kill(actor)
