"""Two operators of which one acts: whatever becomes of it, the other goes on, and nothing is done twice."""

import json
from collections.abc import Iterator

import pytest

from e2e.installation import RELEASE, Images, Operator, wait_installed
from e2e.kube import JOB_LABEL, Kube, Object, condition
from e2e.standin import standin

pytestmark = pytest.mark.cluster

CHILDREN = "jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"


@pytest.fixture(scope="module")
def two(operator: Operator, images: Images) -> Iterator[Operator]:
    """The operator with two pods; with one afterwards."""
    wait_installed(images, "--set=replicas=2")
    yield operator
    wait_installed(images)


@pytest.fixture(scope="module")
def before(two: Operator, shared: Kube, images: Images) -> dict[str, str]:
    """What was made for a job that was there before anything happened, with its versions."""
    shared.apply(standin("before", images.operator))
    shared.wait("ClusterReady", lambda: condition(shared.job("before"), "ClusterReady") == "True", 60)
    return children(shared, "before")


def children(kube: Kube, name: str) -> dict[str, str]:
    items = json.loads(kube.kubectl("get", CHILDREN, "-l", f"{JOB_LABEL}={name}", "-o", "json"))["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}


def lease(two: Operator) -> Object:
    found = two.kube.get("lease", RELEASE)
    assert found is not None
    spec: Object = found["spec"]
    return spec


def leader(two: Operator) -> str:
    """The pod that holds the Lease."""
    return str(lease(two)["holderIdentity"]).partition("_")[0]


def metrics(two: Operator, pod: str) -> str:
    """What a pod says of itself; nothing where it doesn't answer."""
    path = f"/api/v1/namespaces/{two.kube.namespace}/pods/{pod}:8080/proxy/metrics"
    return two.kube.run("get", "--raw", path).stdout


def leaders(two: Operator) -> list[str]:
    """Pods that say that they lead, one asked after the other."""
    names = [pod["metadata"]["name"] for pod in two.pods()]
    return [name for name in names if "\nrltrain_leader 1.0\n" in metrics(two, name)]


def hand_over(two: Operator, kube: Kube, images: Images, name: str, timeout: float) -> None:
    """Wait until a job that is made now is done with by the next leader, and see that no two lead meanwhile."""
    kube.apply(standin(name, images.operator, life=1))

    def finished() -> bool:
        # No process leads again once it leads no more: one that was seen to lead twice has led in between too.
        assert len(leaders(two)) < 2 or len(leaders(two)) < 2
        return condition(kube.job(name), "Succeeded") == "True"

    kube.wait(f"{name} Succeeded", finished, timeout)


def test_a_leader_that_is_deleted_hands_over_and_one_that_is_killed_is_followed(
    two: Operator, shared: Kube, before: dict[str, str], images: Images
) -> None:
    for name, how in (("after-deletion", ("--wait=false",)), ("after-kill", ("--grace-period=0", "--force"))):
        was, transitions = leader(two), lease(two)["leaseTransitions"]

        two.kube.delete("pod", was, *how)
        hand_over(two, shared, images, name, 90)

        assert leaders(two) == [leader(two)] != [was]
        assert lease(two)["leaseTransitions"] == transitions + 1
        two.settle()
    told = metrics(two, leader(two))
    assert 'rltrain_jobs{state="Succeeded"}' in told, "jobs are counted"
    assert 'rltrain_api_requests_total{code="200",resource="rltrainingjobs/status",verb="patch"}' in told
    assert 'rltrain_reconcile_errors_total{cause="unexpected"} 0.0' in told
    assert children(shared, "before") == before


def test_a_rollout_of_both_hands_over_between_pods_that_are_ready(
    two: Operator, shared: Kube, before: dict[str, str], images: Images
) -> None:
    was = {pod["metadata"]["name"] for pod in two.pods()}

    two.kube.kubectl("rollout", "restart", f"deployment/{RELEASE}")
    hand_over(two, shared, images, "in-rollout", 90)
    two.settle()
    hand_over(two, shared, images, "after-rollout", 90)

    assert leaders(two) == [leader(two)]
    assert leader(two) not in was
    assert len(two.pods()) == 2
    assert children(shared, "before") == before


def test_a_leader_whose_lease_is_taken_ends_and_the_taker_is_followed_once_it_is_silent(
    two: Operator, shared: Kube, before: dict[str, str], images: Images
) -> None:
    was, transitions = leader(two), lease(two)["leaseTransitions"]
    stolen = {"spec": {"holderIdentity": "stranger", "leaseTransitions": transitions + 1}}

    two.kube.kubectl("patch", "lease", RELEASE, "--type=merge", "-p", json.dumps(stolen))

    def ended() -> bool:
        return was not in leaders(two)

    shared.wait("it acts no more", ended, 30)
    hand_over(two, shared, images, "after-theft", 90)
    assert leaders(two) == [leader(two)]
    assert lease(two)["leaseTransitions"] == transitions + 2
    assert two.restarts() == 1, "the leader left by itself, in its own pod"
    assert children(shared, "before") == before
