"""Elections over a real HTTP server: hand-overs, losses, and a fence that no late write passes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from operator_kit.server import Server, api_server, refusal
from rltrain_operator.runtime.api import Api, NotLeading
from rltrain_operator.runtime.election import Alone, Election, LeaseLost
from rltrain_operator.runtime.kinds import JOB
from rltrain_operator.runtime.leader import Candidate, Terms

SHORT = Terms(1)
"""Of those who are to lose it, or to wait for it: a machine that stands still for a while changes nothing."""
LONG = Terms(3600)
"""Of those who are to keep it. They renew when the test says so."""
LEASE = ("system", "rltrain")
Test = Callable[[Server, Callable[..., Election]], Awaitable[None]]


def with_server(test: Test) -> None:
    async def body() -> None:
        clients: list[Api] = []
        async with api_server() as server:

            def stand(name: str, terms: Terms = SHORT) -> Election:
                clients.append(Api(1000, server.credentials, tries=1, timeout=5))
                return Election(clients[-1], *LEASE, Candidate(name, terms))

            try:
                await test(server, stand)
            finally:
                for client in clients:
                    await client.close()

    asyncio.run(body())


def lease(server: Server) -> dict[str, object]:
    spec: dict[str, object] = server.objects["leases"][LEASE]["spec"]
    return spec


async def start(election: Election) -> "asyncio.Task[None]":
    task = asyncio.create_task(election.run())
    await election.heard.wait()
    return task


async def stop(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_the_first_leads_and_keeps_the_lead_while_others_wait() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first, second = stand("first", LONG), stand("second")
        await first.turn()
        assert first.leading.is_set()
        acquired = lease(server)["acquireTime"]
        renewals = {acquired}
        for _ in range(5):
            assert await first.turn()
            renewals.add(lease(server)["renewTime"])
            assert not await second.turn()
        assert len(renewals) == 6
        assert first.leads()
        assert not second.leads()
        assert not second.leading.is_set()
        assert (lease(server)["leaseTransitions"], lease(server)["acquireTime"]) == (0, acquired)

    with_server(test)


def test_a_leader_that_is_gone_is_followed_once_its_lease_has_ended_and_one_that_lets_go_at_once() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first, second, third = stand("first"), stand("second", LONG), stand("third")
        await stop(await start(first))
        task = await start(second)
        await second.leading.wait()
        assert not first.leads(), "its own deadline came first"
        assert lease(server)["holderIdentity"] == "second"
        assert lease(server)["leaseTransitions"] == 1

        waiting = await start(third)
        await second.release()
        assert not second.leads()
        await third.leading.wait()
        assert lease(server)["leaseTransitions"] == 2
        await asyncio.wait_for(second.run(), 5)  # it stands no more
        await stop(task, waiting)

    with_server(test)


def test_a_leader_that_can_not_renew_ends_before_another_may_lead() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first = stand("first")
        task = await start(first)

        async def broken(request: web.Request) -> web.StreamResponse:
            return refusal(503, "no etcd")

        server.first = broken
        with pytest.raises(LeaseLost):
            await task
        assert not first.leads()

    with_server(test)


def test_a_leader_whose_renewal_hangs_ends_at_its_deadline_too() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first = stand("first")
        task = await start(first)

        async def silent(request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        server.first = silent
        with pytest.raises(LeaseLost, match="in time"):
            await task

    with_server(test)


def test_short_trouble_of_the_server_loses_no_lead() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first = stand("first", LONG)
        troubles = [429, 500, 503, 409, 404]

        async def broken(request: web.Request) -> web.StreamResponse | None:
            return refusal(troubles.pop()) if troubles else None

        await first.turn()
        server.first = broken
        while not await first.turn():
            assert first.leads()
        assert troubles == []
        assert lease(server)["renewTime"] != lease(server)["acquireTime"]

    with_server(test)


def test_a_deleted_lease_is_made_again_by_its_holder_and_one_that_others_touched_is_renewed() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first, second = stand("first", LONG), stand("second")
        await first.turn()
        await second.turn()
        await server.remove("leases", *LEASE)
        assert not await second.turn()
        assert await first.turn()
        assert lease(server)["holderIdentity"] == "first"

        known = server.objects["leases"][LEASE]
        await server.put("leases", {**known, "metadata": {**known["metadata"], "annotations": {"a": "b"}}})
        assert await first.turn()
        assert first.leads()

    with_server(test)


def test_a_leader_that_finds_another_in_its_lease_ends_at_once() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        first = stand("first", LONG)
        await first.turn()
        known = server.objects["leases"][LEASE]
        await server.put("leases", {**known, "spec": {**known["spec"], "holderIdentity": "thief"}})
        with pytest.raises(LeaseLost, match="thief"):
            await first.turn()

    with_server(test)


def test_no_write_is_sent_by_a_process_that_does_not_lead_and_reads_are() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        election = stand("first", LONG)
        api = Api(1000, server.credentials)
        api.may_write = election.leads
        made = {"metadata": {"namespace": "team", "name": "a"}}
        for write in (
            api.create(JOB, made),
            api.apply(JOB, made),
            api.patch(JOB, "team", "a", "u", {"status": {}}, subresource="status"),
            api.replace(JOB, made),
            api.delete(JOB, "team", "a", "u"),
        ):
            with pytest.raises(NotLeading):
                await write
        assert server.requests == []
        assert [job async for job in api.list(JOB, None)] == []

        await election.turn()
        await api.create(JOB, made)
        await api.close()

    with_server(test)


def test_a_write_that_waits_to_be_tried_again_is_not_sent_after_the_lead_is_lost() -> None:
    async def test(server: Server, stand: Callable[..., Election]) -> None:
        leads = True
        api = Api(1000, server.credentials)
        api.may_write = lambda: leads

        async def busy(request: web.Request) -> web.StreamResponse:
            nonlocal leads
            leads = False
            return refusal(503)

        server.first = busy
        with pytest.raises(NotLeading):
            await api.create(JOB, {"metadata": {"namespace": "team", "name": "a"}})
        assert len(server.requests) == 1
        await api.close()

    with_server(test)


def test_one_that_is_alone_leads_from_the_start() -> None:
    async def body() -> None:
        alone = Alone()
        assert alone.leads()
        assert alone.leading.is_set()
        assert alone.heard.is_set()
        await alone.release()

    asyncio.run(body())
