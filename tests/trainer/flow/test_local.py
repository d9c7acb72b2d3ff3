"""What a pull of a local flow returns, tick by tick."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rltrain.flow import NOT_READY, PROGRESS, Concurrently, LocalIterator, MetricsContext, Stalled, get_metrics


@pytest.fixture(autouse=True)
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


def pulls(flow: LocalIterator[Any], count: int) -> list[Any]:
    return [flow.pull() for _ in range(count)]


def keep_in(seen: list[int]) -> Callable[[int], int]:
    def keep(item: int) -> int:
        seen.append(item)
        return item

    return keep


def test_nothing_happens_before_the_first_pull() -> None:
    seen: list[int] = []
    flow = LocalIterator.of([1, 2, 3]).for_each(keep_in(seen))
    assert seen == []
    assert flow.pull() == 1
    assert seen == [1]


def test_signals_pass_through_every_step() -> None:
    source: LocalIterator[int] = LocalIterator.of([1, NOT_READY, 2, PROGRESS, 3])
    flow = source.for_each(lambda x: x * 10).filter(lambda x: x != 20)
    assert pulls(flow, 5) == [10, NOT_READY, PROGRESS, PROGRESS, 30]


def test_an_item_that_could_not_be_taken_is_offered_again_until_it_is() -> None:
    answers = iter([NOT_READY, NOT_READY, "taken", "taken"])
    offered: list[int] = []

    def full_queue(item: int) -> Any:
        offered.append(item)
        return next(answers)

    flow = LocalIterator.of([1, 2]).for_each(full_queue)
    assert pulls(flow, 4) == [NOT_READY, NOT_READY, "taken", "taken"]
    assert offered == [1, 1, 1, 2]


class Busy:
    """Takes nothing until what it waits for is done."""

    def __init__(self, awaited: Any) -> None:
        self.awaited = [awaited]

    def __call__(self, item: int) -> Any:
        return NOT_READY if self.awaited else item

    def waits(self) -> list[Any]:
        return self.awaited


def test_a_kept_item_waits_for_what_its_operator_names_and_not_for_more_items() -> None:
    source: Any = object()
    busy = Busy("room")
    flow = LocalIterator(lambda: 1, lambda: [source]).for_each(busy).for_each(lambda item: item + 1)
    assert flow.waits() == [source]
    assert flow.pull() is NOT_READY
    assert list(flow.waits()) == busy.awaited
    busy.awaited.clear()
    assert flow.pull() == 2
    assert flow.waits() == [source]


def test_a_flow_whose_condition_fails_is_not_pulled_and_waits_for_nothing() -> None:
    seen: list[int] = []
    allowed = [False]
    source: Any = object()
    numbers = iter(range(9))
    flow = LocalIterator(lambda: next(numbers), lambda: [source]).for_each(keep_in(seen)).only_while(lambda: allowed[0])
    assert (flow.pull(), list(flow.waits()), seen) == (NOT_READY, [], [])
    allowed[0] = True
    assert (flow.pull(), list(flow.waits()), seen) == (0, [source], [0])


def test_a_flow_in_which_nothing_can_become_ready_says_so_instead_of_spinning() -> None:
    with pytest.raises(Stalled, match="no part of the flow is ready"):
        next(iter(LocalIterator.of([NOT_READY])))


def test_iteration_hands_out_items_only_and_ends() -> None:
    assert list(LocalIterator.of([1, PROGRESS, 2])) == [1, 2]


@pytest.mark.parametrize(
    ("weights", "outputs", "expected"),
    [
        (None, None, ["a1", "b1", "a2", "b2", "a3", "b3"]),
        ([2, 1], None, ["a1", "a2", "b1", "a3", "a4", "b2"]),
        ([1, 2], [1], [PROGRESS, "b1", "b2", PROGRESS, "b3", "b4"]),
    ],
)
def test_round_robin_takes_each_childs_weight_in_order(
    weights: Any, outputs: list[int] | None, expected: list[Any]
) -> None:
    a = LocalIterator.of([f"a{i}" for i in range(1, 9)])
    b = LocalIterator.of([f"b{i}" for i in range(1, 9)])
    flow = Concurrently([a, b], mode="round_robin", output_indexes=outputs, round_robin_weights=weights)
    assert pulls(flow, 6) == expected


def test_round_robin_goes_on_to_the_next_child_when_one_is_not_ready() -> None:
    a = LocalIterator.of(["a1", NOT_READY, "a2", NOT_READY, "a3"])
    b = LocalIterator.of([NOT_READY, "b1", "b2", NOT_READY, "b3"])
    flow = Concurrently([a, b], mode="round_robin")
    assert pulls(flow, 8) == ["a1", NOT_READY, "b1", "a2", "b2", NOT_READY, "a3", "b3"]


def test_star_takes_all_that_is_ready_and_never_more() -> None:
    stores = LocalIterator.of(["s1", "s2", "s3"])
    replays = LocalIterator.of([NOT_READY, "r1", "r2", NOT_READY, "r3"])
    flow = Concurrently([stores, replays], mode="round_robin", output_indexes=[1], round_robin_weights=[1, "*"])
    # tick:            s1       (r not ready) s2    r1    r2  (not ready) s3    r3
    assert pulls(flow, 6) == [PROGRESS, PROGRESS, "r1", "r2", PROGRESS, "r3"]


def test_a_cold_replay_does_not_keep_the_store_that_warms_it_from_being_pulled() -> None:
    stored: list[int] = []
    stores = LocalIterator.of(range(100)).for_each(keep_in(stored))
    replays = LocalIterator(lambda: "batch" if len(stored) >= 5 else NOT_READY)
    flow = Concurrently([stores, replays], mode="round_robin", output_indexes=[1])
    assert next(iter(flow)) == "batch"
    assert len(stored) == 5


def test_all_children_not_ready_is_not_ready_after_one_round() -> None:
    pulled = {"a": 0, "b": 0}

    def child(name: str) -> Any:
        def pull() -> Any:
            pulled[name] += 1
            return NOT_READY

        return LocalIterator(pull)

    flow = Concurrently([child("a"), child("b")], mode="round_robin")
    assert flow.pull() is NOT_READY
    assert pulled == {"a": 1, "b": 1}


def test_one_blocking_wait_covers_all_children() -> None:
    waits: list[Any] = []
    ready: list[str] = []

    def wait(futures: Any, timeout: float | None) -> None:
        waits.append(list(futures))
        ready.append("item")

    def child(future: Any) -> LocalIterator[Any]:
        return LocalIterator(lambda: ready.pop() if ready else NOT_READY, lambda: [future], wait)

    flow = Concurrently([child("f1"), child("f2")], mode="async")
    assert next(iter(flow)) == "item"
    assert waits == [["f1", "f2"]]


def test_async_takes_one_from_whichever_child_is_ready() -> None:
    a = LocalIterator.of(["a1", NOT_READY, NOT_READY, "a2"])
    b = LocalIterator.of(["b1", "b2", "b3", NOT_READY])
    assert pulls(Concurrently([a, b], mode="async"), 5) == ["a1", "b1", "b2", "b3", "a2"]


def test_a_finished_child_is_left_out_and_the_flow_ends_with_the_last() -> None:
    flow = Concurrently([LocalIterator.of([1]), LocalIterator.of([2, 3, 4])], mode="round_robin")
    assert list(flow) == [1, 2, 3, 4]


def test_the_turn_is_kept_in_the_metrics_so_that_a_resumed_flow_goes_on_in_turn(metrics: MetricsContext) -> None:
    def children() -> list[LocalIterator[str]]:
        return [LocalIterator.of(["a"] * 9), LocalIterator.of(["b"] * 9)]

    whole = pulls(Concurrently(children(), mode="round_robin", round_robin_weights=[1, 2]), 8)
    metrics.counters.clear()
    first = pulls(Concurrently(children(), mode="round_robin", round_robin_weights=[1, 2]), 5)
    resumed = MetricsContext()
    resumed.set_state(metrics.get_state())
    with resumed.active():
        second = pulls(Concurrently(children(), mode="round_robin", round_robin_weights=[1, 2]), 3)
    assert first + second == whole


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, -1]])
def test_wrong_weights_are_refused(weights: Any) -> None:
    children: list[LocalIterator[int]] = [LocalIterator.of([1]), LocalIterator.of([2])]
    with pytest.raises(ValueError, match="weight"):
        Concurrently(children, mode="round_robin", round_robin_weights=weights)


def test_timers_are_in_milliseconds_and_throughputs_a_second() -> None:
    now = [0.0]
    metrics = MetricsContext(clock=lambda: now[0])
    timer = metrics.timer("learn")
    for seconds in (1.0, 3.0):
        with timer():
            now[0] += seconds
        timer.push_units(100)
    assert timer.mean_ms == 2000.0
    assert timer.throughput == 50.0


def test_metrics_state_round_trips() -> None:
    metrics = get_metrics()
    metrics.counters["steps"] += 7
    metrics.marks["last_report"] = 1.5
    metrics.add_episode(3.0, 2)
    other = MetricsContext()
    other.set_state(metrics.get_state())
    assert (other.counters, other.marks, other.episode_return_mean) == (metrics.counters, {"last_report": 1.5}, 3.0)
