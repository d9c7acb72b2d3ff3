"""Sharded flows, the same over both back ends."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rltrain.flow import (
    NOT_READY,
    PROGRESS,
    Actor,
    ActorFailed,
    ActorLost,
    Backend,
    Future,
    LocalIterator,
    MetricsContext,
    ParallelIterator,
)
from rltrain.flow.parallel import Call
from rltrain.flow.serial import SerialBackend
from trainer.flow.backends import BACKENDS, Counter, Team, backend_of


@pytest.fixture(autouse=True)
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request)


def items(flow: LocalIterator[Any], count: int) -> list[Any]:
    iterator = iter(flow)
    return [next(iterator) for _ in range(count)]


def numbers(team: Team) -> ParallelIterator[int]:
    """Shard k gives 10k + 1, 10k + 2, ..."""
    return ParallelIterator(team, lambda actor: Call(Counter.next))


def double(counter: Counter, item: int) -> int:
    return 2 * item


def fail_at(target: int) -> Any:
    def stage(counter: Counter, item: int) -> int:
        if item == target:
            raise ValueError(f"no {target} here")
        return item

    return stage


def test_gather_sync_goes_round_the_shards_in_order(backend: Backend) -> None:
    flow = numbers(Team(backend, 3)).for_each(double).gather_sync()
    assert items(flow, 7) == [22, 42, 62, 24, 44, 64, 26]


def test_gather_rounds_brings_one_of_each_shard(backend: Backend) -> None:
    assert items(numbers(Team(backend, 2)).gather_rounds(), 2) == [[11, 21], [12, 22]]


def test_gather_async_brings_each_shards_items_in_its_order_and_tells_their_source(backend: Backend) -> None:
    flow = iter(numbers(Team(backend, 2)).gather_async(num_async=2).zip_with_source_actor())
    pairs = [next(flow) for _ in range(12)]
    while len({actor.index for actor, _ in pairs}) < 2:  # every shard has its turn, if the machine lets it run
        pairs.append(next(flow))
    for index in (1, 2):
        own = [item for actor, item in pairs if actor.index == index]
        assert own == [10 * index + n for n in range(1, len(own) + 1)]


def test_word_of_a_later_item_that_comes_first_changes_no_order(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not backend.parallel:
        return
    wait = backend.wait

    def backwards(futures: Sequence[Future], timeout: float) -> list[Future]:
        found: Sequence[Future] = []
        while len(found) < len(futures):
            found = wait(futures, 1.0)
        return list(reversed(found))

    monkeypatch.setattr(backend, "wait", backwards)
    assert items(numbers(Team(backend, 1)).gather_async(num_async=3), 9) == [*range(11, 20)]


def test_gather_async_waits_once_when_nothing_is_there_and_loses_no_result_in_flight(backend: Backend) -> None:
    team = Team(backend, 1)
    flow = numbers(team).gather_async(num_async=3)
    assert items(flow, 9) == [11, 12, 13, 14, 15, 16, 17, 18, 19]


def test_agreement_brings_all_items_together_before_any_shard_goes_on(backend: Backend) -> None:
    flow = numbers(Team(backend, 2)).agree(sum).for_each(Counter.plus_own).batch_across_shards()
    assert items(flow, 2) == [[32 + 11, 32 + 21], [34 + 12, 34 + 22]]


def test_a_generators_yields_are_averaged_over_the_group(backend: Backend) -> None:
    team = Team(backend, 2)
    flow = numbers(team).for_each(Counter.average_twice).batch_across_shards()
    # 11 and 21 have the mean 16; each adds its index, 17 and 18, whose mean is 17.5.
    assert items(flow, 1) == [[(16.0, 17.5), (16.0, 17.5)]]


def test_a_shard_that_fails_before_the_agreement_stops_all_before_the_collective(backend: Backend) -> None:
    team = Team(backend, 2)
    flow = numbers(team).for_each(fail_at(21)).agree(sum).for_each(Counter.average_twice).batch_across_shards()
    assert pull(flow) is PROGRESS
    assert [type(failure) for failure in team.failures] == [ActorFailed]
    assert isinstance(team.failures[0].__cause__, ValueError)
    assert pull(flow) == [(17.0, 18.5), (17.0, 18.5)], "the next round is whole"


def test_a_failing_shard_loses_its_item_and_the_others_keep_theirs(backend: Backend) -> None:
    team = Team(backend, 3)
    flow = numbers(team).for_each(fail_at(22)).gather_rounds()
    assert [pull(flow) for _ in range(3)] == [[11, 21, 31], [12, 32], [13, 23, 33]]
    assert str(team.failures[0].__cause__) == "no 22 here"


def await_end(backend: Backend, actor: Actor) -> None:
    """What a killed process was asked just before its end may still be answered."""
    while True:
        try:
            backend.result(actor.apply(Counter.next))
        except ActorLost:
            return


def test_a_killed_actor_is_lost_for_good_and_the_others_go_on(backend: Backend) -> None:
    team = Team(backend, 2)
    flow = numbers(team).gather_rounds()
    assert pull(flow) == [11, 21]
    backend.kill(team.members[0])
    await_end(backend, team.members[0])
    assert pull(flow) == [22]
    assert [type(failure) for failure in team.failures] == [ActorLost]
    assert team.failures[0].actor.index == 1


def test_a_constructors_error_reaches_the_driver_and_hangs_nothing(backend: Backend) -> None:
    actor = backend.create(broken, role="shards", index=1)
    with pytest.raises(ActorFailed) as failure:
        backend.result(actor.apply(Counter.next))
    assert isinstance(failure.value.__cause__, LookupError)


def test_control_is_answered_while_the_actor_is_busy(backend: Backend) -> None:
    (actor,) = Team(backend, 1).members
    busy = actor.apply(Counter.wait_for_release)
    assert backend.result(actor.control(Counter.release)) == "released"
    assert backend.result(busy) == "done"


def test_a_split_result_leaves_its_large_part_where_it_is_and_hands_on_a_reference(backend: Backend) -> None:
    team = Team(backend, 2)
    split: ParallelIterator[Any] = ParallelIterator(team, lambda actor: Call(small_and_large, (3,), split=True))
    for told, large in items(split.gather_async(num_async=2), 4):
        assert told == "three"
        for actor in team.actors():
            assert backend.result(actor.apply(total, large)) == 6
    with pytest.raises(ValueError, match="has left its shard"):
        split.for_each(double).gather_sync().pull()


def test_a_split_call_that_fails_is_a_failure_and_not_a_reference(backend: Backend) -> None:
    (actor,) = Team(backend, 1).members
    with pytest.raises(ActorFailed):
        backend.result(actor.apply_split(total, None))


def test_where_nothing_runs_meanwhile_shards_take_turns_and_the_turn_outlives_a_restart(
    metrics: MetricsContext,
) -> None:
    team = Team(SerialBackend(), 3)
    assert items(numbers(team).gather_async(num_async=2, name="flow"), 4) == [11, 21, 31, 12]
    resumed = MetricsContext()
    resumed.set_state(metrics.get_state())
    with resumed.active():
        assert items(numbers(team).gather_async(num_async=2, name="flow"), 3) == [22, 32, 13]


def test_no_healthy_shard_is_not_ready(backend: Backend) -> None:
    team = Team(backend, 0)
    assert numbers(team).gather_rounds().pull() is NOT_READY
    assert numbers(team).batch_across_shards().pull() is NOT_READY
    assert numbers(team).gather_async().pull() is NOT_READY


def test_shared_values_arrive_as_themselves(backend: Backend) -> None:
    reference = backend.share([1, 2, 3])
    (actor,) = Team(backend, 1).members
    assert backend.result(actor.apply(total, reference)) == 6


def pull(flow: LocalIterator[Any]) -> Any:
    """One pull, after the wait that NOT_READY asks for."""
    item = flow.pull()
    return flow.tick() if item is NOT_READY else item


def small_and_large(counter: Counter, count: int) -> tuple[str, list[int]]:
    return "three", [1, 2, count]


def total(counter: Counter, values: Sequence[int]) -> int:
    return sum(values)


def broken() -> Counter:
    raise LookupError("no such thing")
