"""The probes say when the work doesn't go on, not only when the process is gone."""

import asyncio
import time
from collections.abc import Callable

import aiohttp

from operator_kit.clock import FastLoop, run
from rltrain_operator.runtime.health import LONGEST_LAG, LONGEST_QUEUE_AGE, LONGEST_WATCH_LAG, Health
from rltrain_operator.runtime.metrics import Metrics


def health(age: Callable[[], float] = lambda: 0.0, behind: Callable[[], bool] = lambda: False) -> Health:
    return Health(age, behind)


def test_all_is_well_when_nothing_waits() -> None:
    async def body(_: FastLoop) -> None:
        probes = health()
        task = asyncio.ensure_future(probes.measure())
        await asyncio.sleep(1000)
        assert probes.problems() == []
        task.cancel()

    run(body)


def test_job_that_waits_too_long_for_its_visit_is_a_problem() -> None:
    assert health(age=lambda: LONGEST_QUEUE_AGE).problems() == []
    assert "has waited" in health(age=lambda: LONGEST_QUEUE_AGE + 1).problems()[0]


def test_watch_that_stays_behind_is_a_problem_and_one_that_catches_up_is_not() -> None:
    is_behind = True

    async def body(_: FastLoop) -> None:
        nonlocal is_behind
        probes = health(behind=lambda: is_behind)
        task = asyncio.ensure_future(probes.measure())
        await asyncio.sleep(LONGEST_WATCH_LAG)
        assert probes.problems() == []
        await asyncio.sleep(5)
        assert "watches" in probes.problems()[0]
        is_behind = False
        await asyncio.sleep(5)
        assert probes.problems() == []
        task.cancel()

    run(body)


def test_event_loop_that_stood_still_is_a_problem() -> None:
    async def body(loop: FastLoop) -> None:
        probes = health()
        task = asyncio.ensure_future(probes.measure())
        await asyncio.sleep(5)
        # Something held the loop: its time goes on without the timer having been served.
        loop._now += LONGEST_LAG + 5
        await asyncio.sleep(1.5)
        assert "lags" in probes.problems()[0]
        await asyncio.sleep(60)
        assert probes.problems() == []
        task.cancel()

    run(body)


def test_probes_answer_over_http() -> None:
    problem = 0.0

    async def body() -> None:
        nonlocal problem
        probes = health(age=lambda: problem)
        runner = await probes.serve("127.0.0.1", 0, Metrics().registry)
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession(f"http://{host}:{port}") as client:

            async def ask(path: str) -> tuple[int, str]:
                async with client.get(path) as answer:
                    return answer.status, await answer.text()

            assert await ask("/healthz") == (200, "ok")
            assert await ask("/readyz") == (503, "the first listing isn't done")
            probes.ready.set()
            assert await ask("/readyz") == (200, "ok")
            problem = time.monotonic() + 1e6
            assert (await ask("/healthz"))[0] == 500
        await runner.cleanup()

    asyncio.run(body())
