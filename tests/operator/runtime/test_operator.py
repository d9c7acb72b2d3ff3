"""The operator's own process against a small API server: it starts, acts, ends in order, and outlives bad watches."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from operator_kit.manifests import manifest
from operator_kit.server import Server, api_server, refusal

LEASE = ("system", "rltrain")
LONG = ("--leader-election=true", "--lease-seconds=3600")
"""Nothing is lost while the machine stands still."""


@asynccontextmanager
async def process(server: Server, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator as its image runs it; killed in the end if it is still there."""
    config = folder / "kubeconfig"
    config.write_text(json.dumps(server.config))
    environ = {**os.environ, "KUBECONFIG": str(config), "POD_NAME": "pod", "POD_NAMESPACE": LEASE[0]}
    command = ("-c", "from rltrain_operator.runtime.main import main; raise SystemExit(main())")
    options = ("--trainer-image=x", "--host=127.0.0.1", "--port=0", f"--lease-name={LEASE[1]}", *LONG)
    made = await asyncio.create_subprocess_exec(
        sys.executable, *command, *options, env=environ, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield made
    finally:
        if made.returncode is None:
            made.kill()
        await made.wait()


async def until(probe: Callable[[], object]) -> None:
    while not probe():
        await asyncio.sleep(0.02)


def test_told_to_end_it_finishes_the_visit_under_way_and_then_frees_the_lease(tmp_path: Path) -> None:
    async def body() -> None:
        async with api_server() as server:
            await server.put("rltrainingjobs", manifest())
            held, go_on = asyncio.Event(), asyncio.Event()

            async def first(request: web.Request) -> None:
                if request.method == "POST" and request.path.endswith("/services"):
                    held.set()
                    await go_on.wait()

            server.first = first
            async with process(server, tmp_path) as operator:
                await held.wait()
                operator.send_signal(signal.SIGTERM)
                await server.put("rltrainingjobs", {**manifest(), "metadata": {"name": "late", "namespace": "team"}})
                go_on.set()
                assert operator.stderr is not None
                log = [json.loads(line) async for line in operator.stderr]
                assert await operator.wait() == 0
            assert server.objects["leases"][LEASE]["spec"]["holderIdentity"] == ""
            assert ("team", "cartpole-head") in server.objects["jobs"], "the visit came to its end"
            assert server.objects["rltrainingjobs"]["team", "cartpole"]["status"]["state"]
            assert ("team", "late-head") not in server.objects["jobs"], "and was the last one"
            writes = [path for method, path in server.requests if method != "GET"]
            assert "/leases/rltrain" in writes[-1]

            about = [line for line in log if line["logger"].endswith((".reconcile", ".posting", ".carry_out"))]
            assert about
            assert {line["job"] for line in about} == {"team/cartpole"}
            (secret,) = server.objects["secrets"].values()
            for word in ("token 1", *secret["stringData"].values()):
                assert word not in json.dumps(log)

    asyncio.run(body())


def test_watches_that_break_for_good_begin_anew_without_the_lead_being_lost(tmp_path: Path) -> None:
    async def body() -> None:
        async with api_server() as server:
            troubles = [
                web.Response(body=b'{"type": "MODIF'),
                web.Response(body=b'{"type": "ERROR", "object": {"code": 500, "message": "etcd"}}\n'),
                refusal(410, "expired"),
            ]

            async def first(request: web.Request) -> web.StreamResponse | None:
                return troubles.pop() if "watch" in request.query and troubles else None

            server.first = first
            async with process(server, tmp_path) as operator:
                await until(lambda: not troubles or operator.returncode is not None)
                await server.put("rltrainingjobs", manifest())
                await until(lambda: server.objects.get("jobs") or operator.returncode is not None)
                assert operator.returncode is None
            spec = server.objects["leases"][LEASE]["spec"]
            assert (spec["holderIdentity"][:4], spec["leaseTransitions"]) == ("pod_", 0)

    asyncio.run(body())
