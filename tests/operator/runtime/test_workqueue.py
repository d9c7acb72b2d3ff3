"""The queue's promises: no key twice, none missed, failures ever later."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from operator_kit.clock import FastLoop, run
from rltrain_operator.runtime.workqueue import WorkQueue

Test = Callable[[WorkQueue[str], FastLoop], Awaitable[None]]


def with_queue(test: Test) -> None:
    async def body(loop: FastLoop) -> None:
        await test(WorkQueue(), loop)

    run(body)


def test_key_added_many_times_is_worked_on_once() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        for _time in range(5):
            queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 100)

    with_queue(test)


def test_key_added_while_it_is_worked_on_is_due_again_and_not_given_to_a_second_worker() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("b")
        assert await queue.get() == "b"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 100)
        queue.done("a")
        assert await queue.get() == "a"

    with_queue(test)


def test_earlier_time_wins_over_a_later_one() -> None:
    async def test(queue: WorkQueue[str], loop: FastLoop) -> None:
        queue.add("a", 60)
        queue.add("a", 5)
        queue.add("a", 300)
        start = loop.time()
        assert await queue.get() == "a"
        assert loop.time() - start == pytest.approx(5, abs=0.1)
        queue.done("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1000)

    with_queue(test)


def test_waiting_worker_is_woken_by_a_key_that_is_due_earlier() -> None:
    async def test(queue: WorkQueue[str], loop: FastLoop) -> None:
        queue.add("late", 100)
        worker = asyncio.ensure_future(queue.get())
        await asyncio.sleep(10)
        queue.add("soon", 1)
        assert await worker == "soon"
        assert loop.time() < 100

    with_queue(test)


def test_failures_are_tried_again_ever_later_and_a_success_forgets_them() -> None:
    async def test(queue: WorkQueue[str], loop: FastLoop) -> None:
        waits = []
        queue.add("a")
        for _time in range(10):
            before = loop.time()
            await queue.get()
            waits.append(loop.time() - before)
            queue.done("a", failed=True)
        assert waits == pytest.approx([0, 0.5, 1, 2, 4, 8, 16, 32, 60, 60], abs=0.1)
        await queue.get()
        queue.done("a")
        queue.add("a")
        await queue.get()
        queue.done("a", failed=True)
        before = loop.time()
        await queue.get()
        assert loop.time() - before == pytest.approx(0.5, abs=0.1)

    with_queue(test)


def test_age_is_that_of_the_key_that_has_waited_longest() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        assert queue.age() == 0
        queue.add("later", 1000)
        queue.add("now")
        await asyncio.sleep(30)
        assert queue.age() == pytest.approx(30, abs=0.1)
        await queue.get()
        assert queue.age() == 0

    with_queue(test)


def test_workers_share_the_keys_between_them() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        active: set[str] = set()
        done: list[str] = []

        async def worker() -> None:
            while True:
                key = await queue.get()
                assert key not in active
                active.add(key)
                await asyncio.sleep(1)
                active.discard(key)
                done.append(key)
                queue.done(key)

        workers = [asyncio.ensure_future(worker()) for _ in range(3)]
        for key in "abcdefabc":
            queue.add(key)
        await asyncio.sleep(10)
        queue.add("a")
        await asyncio.sleep(10)
        for each in workers:
            each.cancel()
        assert sorted(done) == ["a", "a", "b", "c", "d", "e", "f"]

    with_queue(test)


def test_drained_queue_hands_nothing_out_and_waits_for_what_is_worked_on() -> None:
    async def test(queue: WorkQueue[str], loop: FastLoop) -> None:
        queue.add("a")
        queue.add("b", 1)
        assert await queue.get() == "a"
        waiting = asyncio.ensure_future(queue.get())
        draining = asyncio.ensure_future(queue.drain())
        await asyncio.sleep(100)
        assert not draining.done()
        queue.add("c")
        queue.done("a", failed=True)
        await draining
        await asyncio.sleep(100)
        assert not waiting.done()
        waiting.cancel()

    with_queue(test)


def test_queue_with_nothing_at_work_is_drained_at_once() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        queue.add("a")
        await asyncio.wait_for(queue.drain(), 1)

    with_queue(test)


def test_time_that_a_key_was_due_is_told_when_it_is_handed_out() -> None:
    async def body(_: FastLoop) -> None:
        waits: list[float] = []
        queue: WorkQueue[str] = WorkQueue(waits.append)
        queue.add("a", 5)
        queue.add("b", 5)
        assert queue.depth() == 0
        await asyncio.sleep(12)
        assert queue.depth() == 2
        await queue.get()
        assert queue.depth() == 1
        await asyncio.sleep(1)
        await queue.get()
        assert waits == pytest.approx([7, 8], abs=0.1)

    run(body)


def test_a_key_wakes_one_of_many_workers() -> None:
    async def test(queue: WorkQueue[str], _: FastLoop) -> None:
        wakings = 0

        class Counting(asyncio.Event):
            async def wait(self) -> Literal[True]:
                nonlocal wakings
                await super().wait()
                wakings += 1
                return True

        queue._wake = Counting()
        workers = [asyncio.ensure_future(queue.get()) for _ in range(8)]
        await asyncio.sleep(1)
        queue.add("a")
        await asyncio.sleep(1)
        assert wakings == 1
        assert [worker.result() for worker in workers if worker.done()] == ["a"]
        for worker in workers:
            worker.cancel()

    with_queue(test)
