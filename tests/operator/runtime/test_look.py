"""A look at a job's pods is one request, and always brings the head's."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from operator_kit.manifests import manifest
from operator_kit.server import api_server
from rltrain_operator.plan import JobView
from rltrain_operator.runtime import look as looks
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.look import look


def pod(role: str, index: int) -> dict[str, Any]:
    return {"metadata": {"name": f"{role}-{index}", "labels": {"rltrain.dev/role": role}}, "status": {}}


@pytest.mark.parametrize(("others", "requests"), [(1, 1), (4, 2)])
def test_pods_are_listed_once_and_the_head_s_again_where_there_are_too_many(
    others: int, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "MOST_PODS", 3)
    pods = [*(pod("rollouts", index) for index in range(others)), pod("head", 0)]
    asked = []

    async def first(request: web.Request) -> web.StreamResponse:
        asked.append(request.query["labelSelector"])
        fits = [each for each in pods if not asked[-1].endswith("role=head") or each is pods[-1]]
        return web.json_response({"items": fits[: int(request.query["limit"])], "metadata": {}})

    async def main() -> None:
        async with api_server() as server:
            server.first = first
            api = Api(1000, server.credentials)
            made = manifest()
            view = JobView({**made, "metadata": {**made["metadata"], "namespace": "team", "uid": "u1"}})
            report = await look(api, view, ())
            await api.close()
            assert "head-0" in [each["metadata"]["name"] for each in report.pods]
            assert len(report.pods) == min(others, 3) + 1

    asyncio.run(main())
    assert len(asked) == requests
    assert all("rltrain.dev/job-uid=u1" in each for each in asked)
