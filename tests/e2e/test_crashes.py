"""An operator that dies after each of its writes: the next goes on from there, and all is there once."""

import asyncio
from typing import Any

import pytest

from e2e.installation import Images, Operator
from e2e.kube import JOB_LABEL, Kube, condition
from e2e.standin import standin
from rltrain_operator.render import OperatorConfig
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.cache import Cache, Key
from rltrain_operator.runtime.carry_out import Executor
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.metrics import Metrics
from rltrain_operator.runtime.posting import Poster
from rltrain_operator.runtime.reconcile import Reconciler
from rltrain_operator.runtime.resync import Resync

pytestmark = pytest.mark.cluster

KINDS = ("jobs", "services", "configmaps", "secrets", "serviceaccounts", "roles", "rolebindings", "networkpolicies")


class Died(Exception):
    """What no handler of the operator's knows."""


class Mortal(Api):
    """A client that is gone, with the process around it, as soon as it has written."""

    async def _request(self, verb: str, resource: str, path: str, **how: Any) -> Any:
        answer = await super()._request(verb, resource, path, **how)
        if verb not in ("get", "list") and "dryRun" not in (how.get("params") or {}):
            raise Died(f"{verb} {path}")
        return answer


async def visit(key: Key, config: OperatorConfig) -> str | None:
    """A new operator visits one job until it dies; what it wrote, or nothing if there was nothing to write."""
    api = Mortal()
    try:
        cache, discovery = Cache(), Discovery(api)
        executor = Executor(api, cache.workloads)
        await Resync(api, cache, executor.applied, discovery, [key[0]]).run()
        reconciler = Reconciler(api, cache, config, executor, Poster(api, "mortal"), Metrics(), discovery)
        while (again_in := await reconciler.visit(key)) is not None and again_in < 1:
            pass
    except Died as error:
        return str(error)
    finally:
        await api.close()
    return None


def test_a_job_is_made_whole_and_once_by_operators_that_live_for_one_write(
    kube: Kube, operator: Operator, images: Images
) -> None:
    name = "patched-up"
    operator.scale(0)
    try:
        kube.apply(standin(name, images.operator))
        written = []
        while wrote := asyncio.run(visit((kube.namespace, name), OperatorConfig(images.trainer))):
            written.append(wrote)
            assert len(written) < 40, written
    finally:
        operator.scale(1)

    kube.wait("ClusterReady", lambda: condition(kube.job(name), "ClusterReady") == "True", 60)
    assert len(written) > len(KINDS), "each write was somebody's last"
    found = [each["metadata"]["name"] for kind in KINDS for each in kube.select(kind, **{JOB_LABEL: name})]
    assert sorted(found) == sorted(
        [f"{name}-head", f"{name}-rollouts", name, f"{name}-manifest", f"{name}-token", *[f"{name}-driver"] * 3, name]
    )
    assert len(kube.pods(name)) == 2
