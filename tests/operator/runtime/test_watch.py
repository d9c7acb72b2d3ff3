"""Watches that go silent, break off or are refused come back and bring what was missed; if not, liveness fails."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kopf
import pytest
from aiohttp import web

from operator_kit.manifests import manifest
from operator_kit.server import Server, api_server, refusal
from rltrain_operator.runtime.api import SILENCE_SECONDS, Api
from rltrain_operator.runtime.cache import Cache, Key
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.follow import Follower
from rltrain_operator.runtime.health import LONGEST_WATCH_LAG
from rltrain_operator.runtime.kinds import JOB
from rltrain_operator.runtime.resync import Resync
from rltrain_operator.runtime.watch import Patience, registry, settings

Test = Callable[[Server, Cache, list[Key]], Awaitable[None]]
CHILD = {
    "metadata": {
        "namespace": "team",
        "name": "cartpole-head",
        "labels": {"app.kubernetes.io/managed-by": "rltrain", "rltrain.dev/job": "cartpole"},
    }
}


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Test], None]:
    """Runs a test beside the operator's watches, whose patience is a second instead of a minute."""

    async def body(test: Test) -> None:
        cache, due = Cache(), list[Key]()
        made = settings()
        made.watching.inactivity_timeout = 1.0
        made.networking.error_backoffs = [0.01] * 100
        monkeypatch.setattr("rltrain_operator.runtime.api.SILENCE_SECONDS", 1.0)
        for pause in ("PAUSE_SECONDS", "BREATH_SECONDS"):
            monkeypatch.setattr(f"rltrain_operator.runtime.follow.{pause}", 0.01)
        async with api_server() as server:
            await server.put("rltrainingjobs", manifest())
            await server.put("jobs", CHILD)
            (tmp_path / "config").write_text(json.dumps(server.config))
            monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
            handlers = registry(cache, due.append)
            api = Api(1000, server.credentials)
            watching = [
                asyncio.ensure_future(
                    kopf.operator(registry=handlers, settings=made, standalone=True, clusterwide=True)
                ),
                asyncio.ensure_future(Follower(api, cache.jobs, due.append).run(JOB)),
            ]
            try:
                await test(server, cache, due)
            finally:
                for each in watching:
                    each.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                await api.close()

    return lambda test: asyncio.run(body(test))


def watches(server: Server, resource: str) -> int:
    return sum(f"/{resource}?" in path and "watch=true" in path for _, path in server.requests)


async def until(probe: Callable[[], object]) -> None:
    while not probe():
        await asyncio.sleep(0.02)


async def touch(server: Server, resource: str, mark: str) -> None:
    (known,) = server.objects[resource].values()
    await server.put(resource, {**known, "spec": {"mark": mark}})


def marked(cache: Cache, resource: str, mark: str) -> bool:
    store = cache.jobs if resource == "jobs" else cache.training_jobs
    return any((store.get(key) or {}).get("spec", {}).get("mark") == mark for key in store.keys())  # noqa: SIM118


@pytest.mark.parametrize("resource", ["jobs", "rltrainingjobs"])
def test_watch_of_either_kind_that_hangs_without_a_byte_is_made_anew_and_brings_what_was_missed(
    watched: Callable[[Test], None], resource: str
) -> None:
    async def test(server: Server, cache: Cache, due: list[Key]) -> None:
        server.mute.add(resource)
        await until(lambda: watches(server, resource))
        await touch(server, resource, "missed")
        due.clear()
        server.mute.clear()
        await until(lambda: marked(cache, resource, "missed"))
        assert due[0] == ("team", "cartpole")
        assert watches(server, resource) > 1

    watched(test)


@pytest.mark.parametrize("resource", ["jobs", "rltrainingjobs"])
def test_watch_of_either_kind_that_stays_silent_is_behind_what_a_list_shows(
    watched: Callable[[Test], None], resource: str
) -> None:
    async def test(server: Server, cache: Cache, due: list[Key]) -> None:
        api = Api(1000, server.credentials)
        resync = Resync(api, cache, {}, Discovery(api))
        await resync.run()
        await until(lambda: not resync.watch_is_behind())
        await until(lambda: watches(server, resource))
        await touch(server, resource, "first")
        await until(lambda: marked(cache, resource, "first"))

        server.mute.add(resource)
        seen = watches(server, resource)
        await until(lambda: watches(server, resource) > seen)
        await touch(server, resource, "second")
        await resync.run()
        assert marked(cache, resource, "second"), "the list brought it, and its job is visited"
        assert resync.watch_is_behind()

        server.mute.clear()
        await until(lambda: not resync.watch_is_behind())
        await api.close()

    watched(test)


def test_a_watch_is_made_anew_long_before_liveness_fails() -> None:
    assert settings().watching.inactivity_timeout < LONGEST_WATCH_LAG / 2
    assert SILENCE_SECONDS <= LONGEST_WATCH_LAG / 2


def answer(event: dict[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(event).encode() + b"\n")


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(500),
        refusal(503),
        refusal(429, **{"Retry-After": "0"}),
        answer({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}),
    ],
    ids=["500", "503", "429", "410"],
)
@pytest.mark.parametrize("resource", ["jobs", "rltrainingjobs"])
def test_watch_outlives_what_the_server_answers(
    watched: Callable[[Test], None], resource: str, trouble: web.Response
) -> None:
    async def test(server: Server, cache: Cache, due: list[Key]) -> None:
        troubles = 3

        async def first(request: web.Request) -> web.StreamResponse | None:
            nonlocal troubles
            if "watch" not in request.query or not request.path.endswith(f"/{resource}") or not troubles:
                return None
            troubles -= 1
            return web.Response(status=trouble.status, body=trouble.body, headers=trouble.headers)

        server.first = first
        await until(lambda: not troubles)
        await touch(server, resource, "later")
        await until(lambda: marked(cache, resource, "later"))

    watched(test)


def test_patience_has_no_end_and_begins_anew_with_each_request() -> None:
    patience = Patience()
    waits = [wait for _, wait in zip(range(1000), patience, strict=False)]

    assert waits[0] == 1
    assert max(waits) == waits[-1] == 10
    assert next(iter(patience)) == 1
    assert settings().networking.error_backoffs.__class__ is Patience
