"""A visit against a real HTTP server: what the API server's answers lead to."""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from operator_kit.manifests import CONFIG, manifest
from operator_kit.server import Server, api_server, refusal
from rltrain_operator.render import Served
from rltrain_operator.runtime import reconcile
from rltrain_operator.runtime.api import Api, ApiError
from rltrain_operator.runtime.cache import Cache
from rltrain_operator.runtime.carry_out import Executor
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.metrics import Metrics
from rltrain_operator.runtime.posting import Poster
from rltrain_operator.runtime.reconcile import LITTLE_SECONDS, Reconciler

KEY = ("team", "cartpole")


def visiting(test: Callable[[Server, Reconciler], Awaitable[None]]) -> None:
    """Run a test with a reconciler of one job."""

    async def body() -> None:
        async with api_server() as server:
            api, cache = Api(1000, server.credentials, tries=1), Cache()
            cache.training_jobs.see(await server.put("rltrainingjobs", manifest()))
            reconciler = Reconciler(api, cache, CONFIG, Executor(api), Poster(api, "me"), Metrics(), Discovery(api))
            try:
                await test(server, reconciler)
            finally:
                await api.close()

    asyncio.run(body())


def status(server: Server) -> dict[str, object]:
    found: dict[str, object] = server.objects["rltrainingjobs"][KEY].get("status", {})
    return found


def test_conflict_over_the_status_is_a_failed_visit_which_the_next_one_makes_good() -> None:
    async def test(server: Server, reconciler: Reconciler) -> None:
        async def first(request: web.Request) -> web.StreamResponse | None:
            return refusal(409, "the object has been modified") if request.path.endswith("/status") else None

        server.first = first
        with pytest.raises(ApiError, match="modified"):
            await reconciler.visit(KEY)
        assert status(server) == {}
        server.first = None
        await reconciler.visit(KEY)
        assert status(server)["state"] == "Pending"

    visiting(test)


def test_two_that_act_at_once_make_each_child_once_and_delete_nothing() -> None:
    """As for a moment after an upgrade from a release that holds no Lease."""

    async def test(server: Server, reconciler: Reconciler) -> None:
        api, cache = Api(1000, server.credentials, tries=1), Cache()
        cache.training_jobs.see(server.objects["rltrainingjobs"][KEY])
        other = Reconciler(api, cache, CONFIG, Executor(api), Poster(api, "other"), Metrics(), Discovery(api))
        both = (reconciler, other)

        def made() -> dict[str, str]:
            return {
                f"{resource}/{name}": found["metadata"]["uid"] + str(found.get("stringData"))
                for resource, objects in server.objects.items()
                if resource != "events"
                for (_, name), found in objects.items()
            }

        await asyncio.gather(*(each.visit(KEY) for each in both))
        once = made()
        assert {"jobs/cartpole-head", "jobs/cartpole-rollouts", "secrets/cartpole-token"} <= once.keys()
        for each in both:
            for job in server.objects["jobs"].values():
                each.cache.jobs.see(job)
        await asyncio.gather(*(each.visit(KEY) for each in both))
        assert made() == once
        assert "DELETE" not in {method for method, _ in server.requests}
        await api.close()

    visiting(test)


def test_what_is_said_of_a_new_job_needs_no_second_word_once_its_jobs_are_seen() -> None:
    async def test(server: Server, reconciler: Reconciler) -> None:
        await reconciler.visit(KEY)
        assert [role["desired"] for role in status(server)["roles"]] == [1, 1]  # type: ignore[attr-defined]
        for job in server.objects["jobs"].values():
            reconciler.cache.jobs.see(job)
        told = len(writes_of_status(server))
        await reconciler.visit(KEY)
        assert len(writes_of_status(server)) == told == 1

    visiting(test)


def test_a_mere_count_of_ready_pods_waits_for_the_next_one_and_all_of_them_are_told_at_once() -> None:
    async def test(server: Server, reconciler: Reconciler) -> None:
        def ready(name: str) -> None:
            job = server.objects["jobs"]["team", name]
            reconciler.cache.jobs.see({**job, "status": {"startTime": "2026-11-30T12:00:00Z", "ready": 1, "active": 1}})

        await reconciler.visit(KEY)
        for job in server.objects["jobs"].values():
            reconciler.cache.jobs.see(job)
        ready("cartpole-head")
        wait = await reconciler.visit(KEY)
        assert wait is not None
        assert 0 < wait <= LITTLE_SECONDS
        assert len(writes_of_status(server)) == 1
        ready("cartpole-rollouts")
        await reconciler.visit(KEY)
        assert len(writes_of_status(server)) == 2
        assert [role["ready"] for role in status(server)["roles"]] == [1, 1]  # type: ignore[attr-defined]

    visiting(test)


def test_a_count_that_nothing_follows_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "LITTLE_SECONDS", 0.05)

    async def test(server: Server, reconciler: Reconciler) -> None:
        await reconciler.visit(KEY)
        for job in server.objects["jobs"].values():
            reconciler.cache.jobs.see({**job, "status": {"startTime": "2026-11-30T12:00:00Z", "active": 1}})
        head = server.objects["jobs"]["team", "cartpole-head"]
        reconciler.cache.jobs.see({**head, "status": {"ready": 1, "active": 1}})
        while (wait := await reconciler.visit(KEY)) is not None and wait < 1.0:
            await asyncio.sleep(wait)
        assert [role["ready"] for role in status(server)["roles"]] == [1, 0]  # type: ignore[attr-defined]

    visiting(test)


def writes_of_status(server: Server) -> list[str]:
    return [path for method, path in server.requests if method == "PATCH" and "/status" in path]


def test_job_that_went_away_under_its_visit_is_no_failure() -> None:
    async def test(server: Server, reconciler: Reconciler) -> None:
        async def first(request: web.Request) -> web.StreamResponse | None:
            return refusal(404) if request.path.endswith("/status") else None

        server.first = first
        assert await reconciler.visit(KEY) is None

    visiting(test)


def test_scheduler_that_went_away_is_seen_and_the_job_goes_on_without_it() -> None:
    async def test(server: Server, reconciler: Reconciler) -> None:
        async def first(request: web.Request) -> web.StreamResponse | None:
            return refusal(404, "page not found") if "/podgroups" in request.path else None

        server.first = first
        reconciler.discovery.served = Served(volcano=True)
        assert await reconciler.visit(KEY) == 0.0
        assert ("team", "cartpole-head") not in server.objects.get("jobs", {})
        await reconciler.visit(KEY)
        head = server.objects["jobs"]["team", "cartpole-head"]
        assert "schedulerName" not in head["spec"]["template"]["spec"]

    visiting(test)


@pytest.mark.parametrize("form", ["plain", "base64"])
def test_token_that_a_refusal_repeats_reaches_neither_log_nor_status(
    form: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tokens: list[str] = []

    async def test(server: Server, reconciler: Reconciler) -> None:
        async def first(request: web.Request) -> web.StreamResponse | None:
            if request.method != "POST" or not request.path.endswith("/secrets"):
                return None
            (token,) = json.loads(await request.read())["stringData"].values()
            tokens.append(token if form == "plain" else base64.b64encode(token.encode()).decode())
            return refusal(403, f"the webhook doesn't like {tokens[-1]}")

        server.first = first
        await reconciler.visit(KEY)
        assert "the webhook doesn't like …" in json.dumps(status(server), ensure_ascii=False)
        (token,) = tokens
        assert token not in json.dumps(status(server))
        assert token not in caplog.text

    visiting(test)
