"""A job in a queue, visited for real: what is asked of the API server from the queue to the pods and back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from operator_kit.kueue import ADMISSION, ADMITTED, PREEMPTED, Said
from operator_kit.manifests import CONFIG, manifest
from operator_kit.server import Server, api_server, refusal
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.cache import Cache
from rltrain_operator.runtime.carry_out import Executor
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.metrics import Metrics
from rltrain_operator.runtime.posting import Poster
from rltrain_operator.runtime.reconcile import Reconciler
from rltrain_operator.runtime.resync import Resync

KEY = ("team", "cartpole")
FLAVOR: dict[str, Any] = {"metadata": {"name": "fast", "namespace": ""}, "spec": {"nodeLabels": {"disk": "ssd"}}}


class Fresh:
    """An operator that has just started, each time."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def visit(self) -> None:
        api = Api(1000, self.server.credentials)
        cache, discovery = Cache(), Discovery(api)
        executor = Executor(api, cache.workloads)
        await Resync(api, cache, executor.applied, discovery).run()
        await Reconciler(api, cache, CONFIG, executor, Poster(api, "me"), Metrics(), discovery).visit(KEY)
        await api.close()

    async def kueue_says(self, conditions: dict[str, Said], admission: Any) -> None:
        """What Kueue writes."""
        made = [
            {"type": kind, "status": status, "reason": reason, "message": words, "lastTransitionTime": "t"}
            for kind, (status, reason, words) in conditions.items()
        ]
        status = {"conditions": made, "admission": admission}
        await self.server.put("workloads", {**self.server.objects["workloads"][KEY], "status": status})

    def condition(self, kind: str) -> dict[str, Any]:
        status = self.server.objects["rltrainingjobs"][KEY]["status"]
        return next(each for each in status["conditions"] if each["type"] == kind)

    def made(self) -> set[str]:
        """Jobs, but for those that were only tried."""
        return {name for _, name in self.server.objects.get("jobs", {}) if name.count("-") == 1}


def run(body: Callable[[Fresh], Awaitable[None]]) -> None:
    async def main() -> None:
        async with api_server() as server:
            await server.put("rltrainingjobs", manifest(scheduling={"queueName": "team"}))
            await asyncio.wait_for(body(Fresh(server)), 8)

    asyncio.run(main())


def test_from_the_queue_to_its_pods_and_back() -> None:
    async def body(job: Fresh) -> None:
        server = job.server
        await job.visit()
        assert job.condition("ClusterReady")["reason"] == "NoQueueing"

        server.served["kueue.x-k8s.io/v1beta2"] = ("workloads", "Workload")
        await job.visit()
        assert set(server.objects["workloads"]) == {KEY}
        await job.visit()
        assert job.condition("ClusterReady")["reason"] == "Queued"
        assert job.made() == set()

        await server.put("resourceflavors", FLAVOR)
        await job.kueue_says(ADMITTED, ADMISSION)
        await job.visit()
        assert job.made() == {"cartpole-head", "cartpole-rollouts"}
        head = server.objects["jobs"]["team", "cartpole-head"]
        assert head["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}

        await job.kueue_says({**ADMITTED, "Evicted": PREEMPTED}, ADMISSION)
        await job.visit()
        assert job.made() == {"cartpole-rollouts"}, "the head leaves first"
        await job.visit()
        assert job.made() == set()
        await job.visit()
        told = server.objects["workloads"][KEY]["status"]
        assert told["admission"] is None
        assert {each["type"]: each["status"] for each in told["conditions"]}["QuotaReserved"] == "False"
        assert job.condition("ClusterReady")["reason"] == "Queued"

        spec = server.objects["rltrainingjobs"][KEY]["spec"]
        await server.put("rltrainingjobs", {**server.objects["rltrainingjobs"][KEY], "spec": {**spec, "suspend": True}})
        await job.visit()
        assert server.objects["workloads"] == {}

    run(body)


def test_what_of_the_cluster_may_not_be_read_is_told() -> None:
    async def body(job: Fresh) -> None:
        job.server.served["kueue.x-k8s.io/v1beta2"] = ("workloads", "Workload")
        await job.visit()
        await job.kueue_says(ADMITTED, ADMISSION)

        async def first(request: Any) -> Any:
            return refusal(403, "resourceflavors is forbidden") if "flavors" in request.path else None

        job.server.first = first
        await job.visit()
        assert job.made() == set()
        assert "resourceflavors is forbidden" in job.condition("ClusterReady")["message"]

    run(body)
