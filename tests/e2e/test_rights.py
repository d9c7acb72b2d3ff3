"""What the accounts did in this run, beside what they may: the last tests of all."""

import json
from collections.abc import Iterable
from typing import Final

import pytest

from e2e.audit import Request, Right, granted, requests, used
from e2e.installation import NAMESPACE, RELEASE, Operator
from e2e.kube import Kube
from rltrain_operator.runtime import kinds
from testbed.layout import AUDIT_LOG

pytestmark = pytest.mark.cluster

DRIVER: Final = Right("rltrain.dev", "rltrainingjobs/status", "patch")
_IN_THE_WAY: Final = "whose it is, is asked where an earlier job's child has the name still"
SELDOM: Final = {
    Right("rltrain.dev", "rltrainingjobs/finalizers", "update"): (
        "asked for by the admission that guards owner references, where a cluster has it on; no request shows it"
    ),
    Right("coordination.k8s.io", "leases", "create"): "it stays; a cluster that is kept has it",
    **{Right(kind.group, kind.plural, "get"): _IN_THE_WAY for kind in (kinds.JOB, *kinds.LISTED)},
    **{Right(kind.group, kind.plural, "patch"): "of what an earlier release made otherwise" for kind in kinds.LISTED},
    Right(kinds.VOLCANO.group, kinds.VOLCANO.plural, "get"): _IN_THE_WAY,
    Right(kinds.VOLCANO.group, kinds.VOLCANO.plural, "list"): "now and then, where a cluster has Volcano",
    Right(kinds.KUEUE, "workloads", "get"): _IN_THE_WAY,
}
"""Rights that a run may never make use of, and why they are granted."""
WITH_OTHER_VALUES: Final = {Right(kinds.ENDPOINT_SLICE.group, kinds.ENDPOINT_SLICE.plural, "get")}
"""Rights that the chart grants with `jobNetworkPolicy.restrictEgress`."""


@pytest.fixture(scope="module")
def asked(operator: Operator, began: str) -> list[Request]:
    return list(requests(AUDIT_LOG, since=began))


@pytest.fixture(scope="module")
def may(operator: Operator) -> set[Right]:
    """What the chart grants."""
    label = f"app.kubernetes.io/instance={RELEASE}"
    text = Kube(NAMESPACE).kubectl("get", "clusterroles,roles", "-l", label, "-o", "json")
    return granted(json.loads(text)["items"])


def of_operator(asked: Iterable[Request]) -> list[Request]:
    return [request for request in asked if request.account == f"{NAMESPACE}:{RELEASE}"]


def test_operator_asks_for_nothing_that_the_chart_does_not_grant(asked: list[Request], may: set[Right]) -> None:
    known = may | WITH_OTHER_VALUES
    assert {str(request.right) for request in of_operator(asked) if request.right not in known} == set()


@pytest.mark.whole_run
def test_chart_grants_nothing_that_the_operator_never_needed(asked: list[Request], may: set[Right]) -> None:
    assert {str(right) for right in may - used(of_operator(asked)) - SELDOM.keys()} == set()


def test_drivers_patch_the_status_of_their_own_jobs_and_ask_for_nothing_else(asked: list[Request]) -> None:
    for request in asked:
        if request.account.endswith("-driver"):
            assert (request.right, f"{request.namespace}:{request.name}-driver") == (DRIVER, request.account), request
