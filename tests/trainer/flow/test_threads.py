"""Actors in a thread of the driver, alone and beside Ray's."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from rltrain.flow import Actor, ActorFailed, ActorLost, Outstanding, ShardFailure, ValueLost
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.threads import Changes, ThreadActor
from trainer.flow.backends import Counter


class Gate:
    """Holds its caller up until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.seen: list[str] = []

    def pass_through(self, what: str) -> str:
        self.entered.set()
        assert self.open.wait(60)
        self.seen.append(what)
        return what

    def thread(self) -> str:
        return threading.current_thread().name

    def total(self, values: Sequence[int]) -> int:
        return sum(values)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def actor(gate: Gate) -> Iterator[ThreadActor]:
    made = ThreadActor(lambda: gate, 1, lambda actor, value: value, Changes())
    yield made
    gate.open.set()
    made.end()


def result(actor: ThreadActor, future: Any) -> Any:
    actor._changes.wait(lambda: future.done, 60)
    return future.result()


def test_calls_run_in_order_in_one_thread_of_their_own(actor: ThreadActor, gate: Gate) -> None:
    futures = [actor.apply(Gate.pass_through, name) for name in "abc"]
    gate.open.set()
    assert [result(actor, future) for future in futures] == ["a", "b", "c"]
    assert gate.seen == ["a", "b", "c"]
    assert result(actor, actor.apply(Gate.thread)) != threading.current_thread().name


def test_control_is_answered_while_a_call_runs(actor: ThreadActor, gate: Gate) -> None:
    busy: Any = actor.apply(Gate.pass_through, "a")
    assert gate.entered.wait(60)
    assert result(actor, actor.control(Gate.thread)) == threading.current_thread().name
    assert not busy.done


def test_an_error_is_told_with_its_cause_and_the_thread_goes_on(actor: ThreadActor, gate: Gate) -> None:
    with pytest.raises(ActorFailed) as failure:
        result(actor, actor.apply(Gate.total, 1))
    assert isinstance(failure.value.__cause__, TypeError)
    assert result(actor, actor.apply(Gate.total, [1, 2])) == 3


def test_ending_an_idle_thread_waits_for_nothing_and_what_comes_after_is_lost(actor: ThreadActor) -> None:
    actor.end()
    assert not actor._thread.is_alive()
    with pytest.raises(ActorLost):
        result(actor, actor.apply(Gate.thread))


def test_ending_drops_what_has_not_begun(actor: ThreadActor, gate: Gate) -> None:
    actor.apply(Gate.pass_through, "a")
    waiting = actor.apply(Gate.pass_through, "b")
    assert gate.entered.wait(60)
    threading.Timer(0.05, gate.open.set).start()
    actor.end()
    assert gate.seen == ["a"]
    with pytest.raises(ActorLost):
        result(actor, waiting)


def test_a_thread_takes_what_a_reference_stands_for_and_one_wait_serves_threads_and_processes(
    ray_backend: RayBackend, gate: Gate
) -> None:
    here = ray_backend.here(lambda: gate, index=1)
    there = ray_backend.create(lambda: Counter(1), role="shards", index=1)
    try:
        blocked = here.apply(Gate.pass_through, "a")
        answer = there.apply(Counter.next)
        assert ray_backend.wait([blocked, answer], 60) == [answer], "a process wakes the driver"
        assert ray_backend.result(answer) == 11

        stuck = there.apply(Counter.wait_for_release)
        threading.Timer(0.05, gate.open.set).start()
        assert ray_backend.wait([stuck, blocked], 60) == [blocked], "a thread does"
        ray_backend.result(there.control(Counter.release))
        assert ray_backend.wait([stuck], 60) == [stuck]

        reference = ray_backend.share([1, 2, 3])
        assert ray_backend.result(here.apply(Gate.total, reference)) == 6
    finally:
        gate.open.set()
        ray_backend.kill(here)


def test_a_lost_value_is_not_taken_for_a_lost_actor(gate: Gate) -> None:
    def gone(actor: ThreadActor, value: Any) -> Any:
        raise ValueLost(actor, "it is gone")

    actor = ThreadActor(lambda: gate, 1, gone, Changes())
    try:
        with pytest.raises(ValueLost):
            result(actor, actor.apply(Gate.total, "reference"))
    finally:
        actor.end()


def make_elsewhere(counter: Counter) -> list[Any]:
    """A reference to a value that is gone when this process is."""
    import ray

    return [ray.put(np.ones(500_000))]


def total_of(target: object, values: Sequence[float]) -> float:
    return float(np.sum(values))


def lost_in_the_end(backend: RayBackend, actor: Actor, reference: Any) -> bool:
    """Ray needs a moment to notice that the value's owner is gone."""
    while True:
        try:
            backend.result(actor.apply(total_of, reference))
        except ValueLost:
            return True


def test_a_value_gone_with_its_maker_fails_the_call_and_neither_the_thread_nor_the_process_that_was_given_it(
    ray_backend: RayBackend, gate: Gate
) -> None:
    maker, there = (ray_backend.create(lambda: Counter(1), role="shards", index=index) for index in (1, 2))
    here = ray_backend.here(lambda: gate, index=3)
    try:
        (reference,) = ray_backend.result(maker.apply(make_elsewhere))
        assert ray_backend.result(there.apply(total_of, reference)) == 500_000
        ray_backend.kill(maker)
        for actor in (there, here):
            assert lost_in_the_end(ray_backend, actor, reference)
            assert ray_backend.result(actor.apply(total_of, [1, 2])) == 3
    finally:
        ray_backend.kill(here)


def test_outstanding_calls_are_bounded_and_their_failures_told_once(ray_backend: RayBackend) -> None:
    told: list[ShardFailure] = []
    outstanding = Outstanding(ray_backend, 2, told.extend)
    actor: Actor = ray_backend.create(lambda: Counter(1), role="shards", index=1)
    stuck = actor.apply(Counter.wait_for_release)
    outstanding.add(stuck)
    assert not outstanding.full
    outstanding.add(actor.apply(Counter.next))
    assert outstanding.full
    ray_backend.result(actor.control(Counter.release))
    ray_backend.wait(outstanding.pending[1:], 60)
    assert not outstanding.full
    assert told == []
    outstanding.add(actor.apply(Counter.plus_own, "no number"))
    ray_backend.wait(outstanding.pending, 60)
    outstanding.reap()
    assert [(type(failure), failure.actor) for failure in told] == [(ActorFailed, actor)]
    assert outstanding.pending == []
