"""The client's manners, against a server that is busy, broken or refuses."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from operator_kit.clock import FastLoop, run
from operator_kit.server import Handler, Server, refusal, serving
from rltrain_operator.runtime.api import TRIES, Api, ApiError, Count, RateLimit, Unreachable
from rltrain_operator.runtime.kinds import JOB, POD


@asynccontextmanager
async def api_for(
    handler: Handler, *, tries: int = TRIES, count: Count = lambda verb, resource, code: None
) -> AsyncIterator[Api]:
    """A client of a server on this machine."""
    server = Server()
    async with serving(handler) as server.url:
        client = Api(1000, server.credentials, tries=tries, count=count)
        try:
            yield client
        finally:
            await client.close()


JOB_OBJECT = {"metadata": {"namespace": "team", "name": "a-head"}, "spec": {}}


@pytest.mark.parametrize("code", [429, 500, 503])
def test_busy_or_broken_server_is_asked_again(code: int) -> None:
    asked = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return refusal(code, "busy") if asked < 3 else web.json_response({"ok": True})

    async def body() -> None:
        async with api_for(handler) as api:
            assert await api.get(JOB, "team", "a-head") == {"ok": True}
        assert asked == 3

    asyncio.run(body())


def test_token_that_is_not_taken_any_more_is_read_anew_but_not_for_ever() -> None:
    seen = []
    taken = "Bearer token 2"

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        return web.json_response({}) if seen[-1] == taken else refusal(401, "Unauthorized")

    async def body() -> None:
        nonlocal taken
        async with api_for(handler) as api:
            await api.get(JOB, "team", "a-head")
            await api.get(JOB, "team", "a-head")
            taken = ""
            with pytest.raises(ApiError, match="Unauthorized"):
                await api.get(JOB, "team", "a-head")

    asyncio.run(body())
    assert seen == ["Bearer token 1", *["Bearer token 2"] * 3, "Bearer token 3"]


def test_server_that_hangs_up_is_asked_again_and_then_called_unreachable() -> None:
    asked = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def body() -> None:
        async with api_for(handler, tries=2) as api:
            with pytest.raises(Unreachable, match="POST /apis/batch/v1/namespaces/team/jobs"):
                await api.create(JOB, JOB_OBJECT)

    asyncio.run(body())
    assert asked == 2


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422])
def test_refusal_is_not_tried_again_and_keeps_the_servers_words(code: int) -> None:
    asked = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return refusal(code, "no, and this is why")

    async def body() -> None:
        async with api_for(handler) as api:
            with pytest.raises(ApiError, match="no, and this is why") as raised:
                await api.create(JOB, JOB_OBJECT)
            assert raised.value.code == code
        assert asked == 1

    asyncio.run(body())


def test_unknown_field_is_the_senders_fault_even_when_it_comes_as_500() -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return refusal(500, "failed to create typed patch object (...): .spec.x: field not declared in schema")

    async def body() -> None:
        async with api_for(handler) as api:
            with pytest.raises(ApiError) as raised:
                await api.apply(JOB, JOB_OBJECT)
            assert raised.value.code == 400
            assert api.requests == 1

    asyncio.run(body())


def test_apply_is_a_forced_server_side_apply_of_ours() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        assert json.loads(await request.read()) == JOB_OBJECT
        return web.json_response({})

    async def body() -> None:
        async with api_for(handler) as api:
            await api.apply(JOB, JOB_OBJECT, dry_run=True)
            await api.apply(JOB, JOB_OBJECT)

    asyncio.run(body())
    dry, real = seen
    assert dry.method == "PATCH"
    assert dry.path == "/apis/batch/v1/namespaces/team/jobs/a-head"
    assert dry.headers["Content-Type"] == "application/apply-patch+yaml"
    assert dict(dry.query) == {
        "fieldManager": "rltrain-operator",
        "force": "true",
        "fieldValidation": "Strict",
        "dryRun": "All",
    }
    assert real.path == dry.path
    assert "dryRun" not in real.query


def test_delete_names_the_very_object() -> None:
    bodies = []

    async def handler(request: web.Request) -> web.StreamResponse:
        bodies.append(json.loads(await request.read()))
        return web.json_response({})

    async def body() -> None:
        async with api_for(handler) as api:
            await api.delete(JOB, "team", "a-head", "u1")

    asyncio.run(body())
    assert bodies == [{"propagationPolicy": "Background", "preconditions": {"uid": "u1"}}]


def test_list_goes_on_page_by_page_and_stops_at_its_limit() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", 0))
        size = min(int(request.query["limit"]), 2)
        items = [{"n": n} for n in range(start, min(start + size, 5))]
        more = str(start + size) if start + size < 5 else ""
        return web.json_response({"items": items, "metadata": {"continue": more}})

    async def body() -> None:
        async with api_for(handler) as api:
            assert [item["n"] async for item in api.list(POD, "team")] == [0, 1, 2, 3, 4]
            assert [item["n"] async for item in api.list(POD, None, limit=3)] == [0, 1, 2]

    asyncio.run(body())


def test_rate_is_limited_after_a_burst() -> None:
    async def body(loop: FastLoop) -> None:
        limit = RateLimit(per_second=10, burst=20)
        await asyncio.sleep(100)
        start = loop.time()
        for _ in range(20):
            await limit.take()
        assert loop.time() - start == pytest.approx(0, abs=0.2)
        for _ in range(100):
            await limit.take()
        assert loop.time() - start == pytest.approx(10, abs=0.5)

    run(body)


def test_server_that_says_when_to_come_again_is_left_alone_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:  # libraries let others run with a sleep of none
            waits.append(seconds)

    async def handler(_: web.Request) -> web.StreamResponse:
        answers = [{"Retry-After": "7"}, {"Retry-After": "soon"}, {}]
        return refusal(429, "busy", **answers[len(waits)]) if len(waits) < 3 else web.json_response({})

    async def body() -> None:
        async with api_for(handler) as api:
            monkeypatch.setattr(asyncio, "sleep", sleep)
            await api.get(JOB, "team", "a-head")

    asyncio.run(body())
    asked, garbled, silent = waits
    assert 7 <= asked <= 7 * 1.5
    assert 0.4 <= garbled <= 0.4 * 1.5
    assert 0.8 <= silent <= 0.8 * 1.5


@pytest.mark.parametrize("broken", ["cut off", "no JSON"])
def test_answer_that_is_none_is_asked_for_again_and_then_given_up(broken: str) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if broken == "no JSON":
            return web.Response(text="<html>the proxy's word</html>")
        stream = web.StreamResponse(headers={"Content-Length": "1000"})
        await stream.prepare(request)
        await stream.write(b'{"metadata": {')
        assert request.transport is not None
        request.transport.close()
        return stream

    async def body() -> None:
        counted: list[tuple[str, str, str]] = []
        async with api_for(handler, tries=2, count=lambda *words: counted.append(words)) as api:
            with pytest.raises(Unreachable, match="GET /apis/batch"):
                await api.get(JOB, "team", "a-head")
        assert len(counted) == 2
        assert {words[:2] for words in counted} == {("get", "jobs")}
        assert ("get", "jobs", "") in counted or broken == "no JSON"

    asyncio.run(body())


def test_every_try_is_counted_by_verb_resource_and_code() -> None:
    codes = [503, 200, 404, 200, 200, 200, 200, 200]

    async def handler(_: web.Request) -> web.StreamResponse:
        code = codes.pop(0)
        return web.json_response({}) if code == 200 else refusal(code)

    async def body() -> None:
        counted: list[str] = []
        async with api_for(handler, count=lambda *words: counted.append(" ".join(words))) as api:
            await api.get(JOB, "team", "a-head")
            with pytest.raises(ApiError):
                await api.metadata(JOB, "team", "a-head")
            assert [each async for each in api.list(POD, None)] == []
            await api.create(JOB, JOB_OBJECT)
            await api.replace(JOB, JOB_OBJECT)
            await api.patch(JOB, "team", "a-head", "u1", {"status": {}}, subresource="status")
            await api.delete(JOB, "team", "a-head", "u1")
        assert counted == [
            "get jobs 503",
            "get jobs 200",
            "get jobs 404",
            "list pods 200",
            "create jobs 200",
            "update jobs 200",
            "patch jobs/status 200",
            "delete jobs 200",
        ]

    asyncio.run(body())
