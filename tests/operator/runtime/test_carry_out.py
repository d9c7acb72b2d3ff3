"""Plans are carried out with few words to the API server, and without leaving halves of jobs."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from operator_kit.server import Server, serving
from rltrain_operator.plan import JobView, Plan, Refusal
from rltrain_operator.render import ANNOTATION_HASH
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.carry_out import Executor

UID = "u1"
VIEW = JobView({"metadata": {"namespace": "team", "name": "a", "uid": UID}})


def child(kind: str, name: str, owner: str = UID) -> dict[str, Any]:
    metadata = {"namespace": "team", "name": name, "ownerReferences": [{"uid": owner}]}
    version = "batch/v1" if kind == "Job" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {**metadata, "annotations": {ANNOTATION_HASH: "h"}}}


HEAD, ROLLOUTS, SERVICE, SECRET = (
    child("Job", "a-head"),
    child("Job", "a-rollouts"),
    child("Service", "a"),
    child("Secret", "a-token"),
)


def carry_out(
    plan: Plan,
    *,
    there: dict[str, Any] | None = None,
    refused: str = "",
    unchangeable: str = "",
    applied: dict[tuple[str, str], str] | None = None,
) -> tuple[tuple[Refusal, ...], list[str], Executor]:
    """What came back, what was asked of the server, and the executor.

    Args:
        plan: to be carried out.
        there: a Secret that is there already.
        refused: name of the object that the server refuses.
        unchangeable: name of the object that the server refuses to change.
        applied: what is known to be there.
    """
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or "null")
        name = request.path.rpartition("/")[2] if request.method != "POST" else body["metadata"]["name"]
        dry = "try " if "dryRun" in request.query else ""
        asked.append(f"{dry}{request.method} {name}")
        if name == refused:
            return web.json_response({"message": "no"}, status=400)
        if name == unchangeable and request.method == "PATCH":
            return web.json_response({"message": "field is immutable"}, status=422)
        if request.method == "DELETE":
            return web.json_response({})
        if request.method == "GET":
            return web.json_response(there or {"message": "not found"}, status=200 if there else 404)
        if request.method == "POST" and there:
            return web.json_response({"message": "already exists"}, status=409)
        return web.json_response({**body, "metadata": {**body["metadata"], "creationTimestamp": "now"}})

    async def body() -> tuple[tuple[Refusal, ...], list[str], Executor]:
        server = Server()
        async with serving(handler) as server.url:
            api = Api(1000, server.credentials)
            executor = Executor(api, applied={UID: dict(applied)} if applied else {})
            try:
                return await executor.carry_out(VIEW, plan), asked, executor
            finally:
                await api.close()

    return asyncio.run(body())


def seen(owner: str = UID) -> dict[str, Any]:
    made = child("Secret", "a-token", owner)
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": "then"}}


def test_every_job_but_the_first_is_tried_before_anything_is_made() -> None:
    refusals, asked, executor = carry_out(Plan(create=(SECRET,), apply=(SERVICE, HEAD, ROLLOUTS)))
    assert refusals == ()
    assert asked == ["try POST a-rollouts", "POST a-token", "POST a", "POST a-head", "POST a-rollouts"]
    assert executor.token_since == {UID: "now"}


def test_job_that_is_refused_leaves_no_other_job_behind() -> None:
    refusals, asked, _ = carry_out(Plan(apply=(SERVICE, HEAD, ROLLOUTS)), refused="a-head")
    assert [refusal.name for refusal in refusals] == ["a-head"]
    assert asked[-1] == "POST a-head"
    refusals, asked, _ = carry_out(Plan(apply=(SERVICE, HEAD, ROLLOUTS)), refused="a-rollouts")
    assert [refusal.name for refusal in refusals] == ["a-rollouts"]
    assert asked == ["try POST a-rollouts"]


KNOWN = {("Service", "a"): "h"}


def test_child_that_is_there_is_applied_for_it_may_hold_what_others_have_set() -> None:
    _, asked, _ = carry_out(Plan(apply=(SERVICE,)), applied={("Service", "a"): "of an earlier release"})
    assert asked == ["PATCH a"]
    _, asked, executor = carry_out(Plan(apply=(SERVICE,)), there=SERVICE)
    assert asked == ["POST a", "PATCH a"]
    assert executor.applied[UID] == KNOWN


def test_secret_of_a_job_that_has_other_children_is_looked_for_not_written() -> None:
    refusals, asked, executor = carry_out(Plan(create=(SECRET,)), there=seen(), applied=KNOWN)
    assert (refusals, asked) == ((), ["GET a-token"])
    assert executor.applied[UID] == {**KNOWN, ("Secret", "a-token"): "h"}
    assert executor.token_since == {UID: "then"}


def test_secret_that_is_gone_is_made_anew() -> None:
    _, asked, executor = carry_out(Plan(create=(SECRET,)), applied=KNOWN)
    assert asked == ["GET a-token", "POST a-token"]
    assert executor.token_since == {UID: "now"}


@pytest.mark.parametrize("applied", [{}, KNOWN])
def test_secret_of_another_object_is_not_taken_for_the_jobs_own(applied: dict[tuple[str, str], str]) -> None:
    refusals, _, executor = carry_out(Plan(create=(SECRET,)), there=seen("u2"), applied=applied)
    assert [(refusal.name, refusal.code) for refusal in refusals] == [("a-token", 409)]
    assert ("Secret", "a-token") not in executor.applied.get(UID, {})


GROUP = {**child("PodGroup", "a"), "apiVersion": "scheduling.k8s.io/v1alpha2"}
FORMER = {("PodGroup", "a"): "of the former size"}


def test_group_that_kubernetes_wont_change_makes_way_for_another() -> None:
    there = {**GROUP, "metadata": {**GROUP["metadata"], "uid": "g"}}
    refusals, asked, executor = carry_out(Plan(apply=(GROUP, HEAD)), there=there, unchangeable="a", applied=FORMER)
    assert [(refusal.kind, refusal.code) for refusal in refusals] == [("PodGroup", 409)]
    assert asked == ["PATCH a", "GET a", "DELETE a"], "no pods before the other is there"
    assert executor.applied[UID] == FORMER

    leaving = {**there, "metadata": {**there["metadata"], "deletionTimestamp": "now"}}
    refusals, asked, _ = carry_out(Plan(apply=(GROUP, HEAD)), there=leaving, unchangeable="a", applied=FORMER)
    assert [refusal.code for refusal in refusals] == [409]
    assert asked == ["PATCH a", "GET a"]


def test_another_jobs_group_stays() -> None:
    there = {**GROUP, "metadata": {**GROUP["metadata"], "uid": "g", "ownerReferences": [{"uid": "u2"}]}}
    refusals, asked, _ = carry_out(Plan(apply=(GROUP,)), there=there, unchangeable="a")
    assert [refusal.code for refusal in refusals] == [409]
    assert asked == ["POST a", "PATCH a", "GET a"]
