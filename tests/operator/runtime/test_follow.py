"""Kueue's Workloads are followed from when the cluster has them, whenever that is."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from operator_kit.server import Server, api_server, refusal
from rltrain_operator.render import Served
from rltrain_operator.runtime import discovery as discoveries
from rltrain_operator.runtime import follow
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.cache import Key, Store
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.follow import Follower
from rltrain_operator.runtime.kinds import JOB

LABELS = {"app.kubernetes.io/managed-by": "rltrain", "rltrain.dev/job": "cartpole"}
WORKLOAD: dict[str, Any] = {"metadata": {"namespace": "team", "name": "cartpole", "labels": LABELS}}
KEY = ("team", "cartpole")


@asynccontextmanager
async def following(server: Server) -> AsyncIterator[tuple[Discovery, Store, list[Key]]]:
    api = Api(1000, server.credentials)
    discovery, store, due = Discovery(api), Store(), list[Key]()
    await discovery.look()
    task = asyncio.ensure_future(Follower(api, store, due.append).run_workloads(discovery))
    try:
        yield discovery, store, due
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()


async def until(probe: Callable[[], object]) -> None:
    while not probe():
        await asyncio.sleep(0.01)


def run(body: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        async with api_server() as server:
            await asyncio.wait_for(body(server), 8)

    asyncio.run(main())


def test_nothing_is_asked_for_until_kueue_is_there_and_then_its_jobs_are_due() -> None:
    async def body(server: Server) -> None:
        await server.put("workloads", WORKLOAD)
        async with following(server) as (discovery, store, due):
            assert discovery.served == Served()
            server.served["kueue.x-k8s.io/v1beta1"] = ("workloads", "Workload")
            await discovery.look()
            assert discovery.served == Served(kueue="v1beta1")
            await until(lambda: KEY in due)
            assert store.get(KEY) is not None
            asked = [path for _, path in server.requests if "workloads" in path]
            assert all(path.startswith("/apis/kueue.x-k8s.io/v1beta1/workloads") for path in asked)

            due.clear()
            await server.put("workloads", {**WORKLOAD, "status": {"now": "admitted"}})
            await until(lambda: (store.get(KEY) or {}).get("status"))
            assert KEY in due
            due.clear()
            await server.remove("workloads", *KEY)
            await until(lambda: store.get(KEY) is None)
            assert KEY in due

    run(body)


def test_a_watch_that_breaks_begins_anew_with_what_went_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PAUSE_SECONDS", 0.01)
    refused = 0

    async def body(server: Server) -> None:
        async def first(request: Any) -> Any:
            nonlocal refused
            if "watch" in request.query and refused < 2:
                refused += 1
                return refusal(500, "busy")
            return None

        server.served["kueue.x-k8s.io/v1beta2"] = ("workloads", "Workload")
        server.first = first
        await server.put("workloads", WORKLOAD)
        async with following(server) as (_, store, due):
            labels = {**LABELS, "rltrain.dev/job": "gone"}
            store.see({**WORKLOAD, "metadata": {**WORKLOAD["metadata"], "name": "gone", "uid": "g", "labels": labels}})
            await until(lambda: KEY in due and refused == 2)
            assert store.get(("team", "gone")) is None
            assert ("team", "gone") in due

    run(body)


def test_a_watch_that_the_server_ends_goes_on_from_its_last_word_without_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follow, "BREATH_SECONDS", 0.0)
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Job", "metadata": {"resourceVersion": "77"}}}
    since: list[str] = []

    async def body(server: Server) -> None:
        async def first(request: web.Request) -> web.StreamResponse | None:
            if "watch" not in request.query:
                return None
            since.append(request.query["resourceVersion"])
            last = "MODIFIED" if len(since) == 2 else "BOOKMARK"
            job = await server.put("jobs", {**WORKLOAD, "metadata": {**WORKLOAD["metadata"], "name": "cartpole-head"}})
            event = {"type": last, "object": job} if last == "MODIFIED" else bookmark
            return web.Response(body=json.dumps(event).encode() + b"\n")

        server.first = first
        api, store, due = Api(1000, server.credentials), Store(), list[Key]()
        task = asyncio.ensure_future(Follower(api, store, due.append).run(JOB))
        await until(lambda: len(since) > 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()
        lists = [path for _, path in server.requests if path.startswith("/apis/batch") and "watch" not in path]
        assert since[:4] == ["0", "77", "2", "77"]
        assert len(lists) == 1
        assert due == [KEY], "a bookmark is news of no job"

    run(body)


def test_however_many_jobs_miss_a_scheduler_it_is_looked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(server: Server) -> None:
        api = Api(1000, server.credentials)
        discovery = Discovery(api)
        for _ in range(5):
            await discovery.look_again()
        assert [path for _, path in server.requests] == ["/apis"]
        monkeypatch.setattr(discoveries, "SECONDS", 0.0)
        server.served["scheduling.volcano.sh/v1beta1"] = ("podgroups", "PodGroup")
        await discovery.look_again()
        server.served["scheduling.k8s.io/v1alpha2"] = ("podgroups", "PodGroup")
        await discovery.look_again()
        assert discovery.served == Served(volcano=True, pod_groups="v1alpha2")
        await api.close()

    run(body)


def test_the_api_server_is_looked_for_only_where_a_policy_names_it() -> None:
    async def body(server: Server) -> None:
        found = {"endpoints": [{"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.1"]}], "ports": [{"port": 6443}]}
        await server.put("endpointslices", {"metadata": {"name": "kubernetes"}, **found})
        api = Api(1000, server.credentials)
        discovery = Discovery(api, finds_api_server=True)
        await discovery.look()
        assert discovery.served.api_server == (("10.0.0.1", 6443), ("10.0.0.2", 6443))
        server.requests.clear()
        await Discovery(api).look()
        assert [path for _, path in server.requests] == ["/apis"]
        await api.close()

    run(body)
