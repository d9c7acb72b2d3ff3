"""A gang that the cluster's scheduler keeps: all the pods that training needs are placed, or none."""

import json
from collections.abc import Iterator

import pytest

from e2e import volcano
from e2e.installation import Images
from e2e.kube import Kube, Object, condition, message, reason
from e2e.standin import standin

# The time is for building Volcano's scheduler, where that was never done.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]

NAME = "gang"
PLACES = "e2e.rltrain.dev/places"
"""What the node has as many of as the test says."""


@pytest.fixture(params=["Kubernetes", "Volcano"])
def keeper(request: pytest.FixtureRequest) -> Iterator[str]:
    """Who keeps the gang, in a cluster that has it."""
    if request.param == "Kubernetes":
        yield "Kubernetes"
        return
    with volcano.installed():
        yield "Volcano"


class Places:
    """The node's room for pods of the test."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._node = kube.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")

    def set(self, count: int | None) -> None:
        room = {PLACES: None if count is None else str(count)}
        patch = {"status": {"capacity": room, "allocatable": room}}
        self._kube.kubectl("patch", "node", self._node, "--subresource=status", "--type=merge", "-p", json.dumps(patch))


@pytest.fixture
def places(kube: Kube) -> Iterator[Places]:
    made = Places(kube)
    yield made
    made.set(None)


def edit(kube: Kube, rollouts: int) -> None:
    """Another number of rollouts, none of which training can do without."""
    patch = {"spec": {"rollouts": {"replicas": rollouts, "minReplicas": rollouts}}}
    kube.kubectl("patch", "rltj", NAME, "--type=merge", "-p", json.dumps(patch))


def least(kube: Kube, keeper: str) -> int:
    """Pods without which none is placed; 0 while there is no group."""
    api = {"Kubernetes": "scheduling.k8s.io", "Volcano": "scheduling.volcano.sh"}[keeper]
    spec = (kube.get(f"podgroups.{api}", NAME) or {}).get("spec", {})
    least: int = spec.get("minMember") or spec.get("schedulingPolicy", {}).get("gang", {}).get("minCount", 0)
    return least


def unplaced(kube: Kube, count: int) -> Object | None:
    """The job once it has that many pods which fit nowhere, and says so."""
    job, pods = kube.job(NAME), kube.pods(NAME)
    told = len(pods) == count and f"Insufficient {PLACES}" in message(job, "ClusterReady")
    return job if told and reason(job, "ClusterReady") == "Unschedulable" else None


def placed(kube: Kube) -> list[str]:
    return [pod["metadata"]["name"] for pod in kube.pods(NAME) if pod["spec"].get("nodeName")]


def test_no_pod_is_placed_before_all_are_that_training_needs(
    kube: Kube, keeper: str, places: Places, images: Images
) -> None:
    manifest = standin(NAME, images.operator, life=3, scheduling={"gang": keeper})
    for role in ("head", "rollouts"):
        manifest["spec"][role]["resources"] = {"requests": {PLACES: "1"}, "limits": {PLACES: "1"}}
    manifest["spec"]["rollouts"] |= {"replicas": 3, "minReplicas": 3}
    places.set(2)
    kube.apply(manifest)
    job = kube.wait("it fits nowhere", lambda: unplaced(kube, 4), 60)
    assert "0/1 nodes are" in message(job, "ClusterReady"), "in the scheduler's words"
    assert least(kube, keeper) == 4
    assert placed(kube) == [], "the head isn't either, for which there is room"

    edit(kube, 2)
    kube.wait("a smaller gang is there", lambda: least(kube, keeper) == 3, 60)
    kube.wait("it fits nowhere either", lambda: unplaced(kube, 3), 60)
    assert placed(kube) == []

    places.set(3)
    job = kube.wait_finished(NAME, 90)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
