"""Namesakes in quick succession, and an operator that dies halfway: no duplicates, no leftovers."""

import json
from collections import Counter

import pytest

from e2e.installation import Images, Operator
from e2e.kube import Kube, Object, condition, message
from e2e.manifests import example
from e2e.standin import standin

pytestmark = pytest.mark.cluster

CHILDREN = "jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"


def test_namesake_made_at_once_after_a_delete_50_times_leaves_one_job_that_starts_fresh(kube: Kube) -> None:
    name = "again"
    manifest = example("cartpole-dqn", name, stop={"envSteps": 2000})
    kube.apply(manifest)
    kube.wait("its head is being made", lambda: kube.pods(name, "head"), 60)
    for _ in range(50):
        # Deleted and made again by one program, within 100 ms.
        kube.kubectl("replace", "--force", "-f", "-", stdin=json.dumps(manifest))

    job = kube.wait_finished(name, timeout=400)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert job["status"]["progress"]["attempt"] == 1
    assert job["status"]["progress"].get("resumedFromSteps") is None, "a namesake starts fresh"
    kube.wait("only the last one's children are left", lambda: _owners(kube) == {job["metadata"]["uid"]}, 120)
    _assert_no_duplicates(kube)


def test_namesake_runs_though_the_earlier_ones_head_takes_its_time_to_end(kube: Kube, images: Images) -> None:
    name = "stubborn"
    kube.apply(standin(name, images.operator, stubborn_seconds=15))
    kube.wait("its head runs", lambda: any(map(_ready, kube.pods(name, "head"))), 60)
    (old,) = kube.pods(name, "head")
    kube.kubectl("replace", "--force", "-f", "-", stdin=json.dumps(standin(name, images.operator, life=1)))

    job = kube.wait_finished(name, timeout=120)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert job["metadata"]["uid"] != old["metadata"]["labels"]["rltrain.dev/job-uid"]
    kube.wait("the earlier head is gone", lambda: kube.get("pod", old["metadata"]["name"]) is None, 60)
    kube.wait("only the last one's children are left", lambda: _owners(kube) == {job["metadata"]["uid"]}, 60)
    _assert_no_duplicates(kube)


@pytest.mark.parametrize("first_seen", ["service", "job"])
def test_operator_killed_between_two_applies_of_a_job_finishes_it_after_its_restart(
    kube: Kube, operator: Operator, images: Images, first_seen: str
) -> None:
    name = "halfway"
    kube.apply(standin(name, images.operator, life=1))
    kube.wait(f"the first {first_seen}", lambda: kube.kubectl("get", first_seen, "-o", "name").strip(), 60)
    operator.kill()

    job = kube.wait_finished(name, timeout=120)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    _assert_no_duplicates(kube)


def _ready(pod: Object) -> bool:
    return any(each["ready"] for each in pod["status"].get("containerStatuses", []))


def _children(kube: Kube) -> list[Object]:
    label = "app.kubernetes.io/managed-by=rltrain"
    items: list[Object] = json.loads(kube.kubectl("get", CHILDREN, "-l", label, "-o", "json"))["items"]
    return items


def _owners(kube: Kube) -> set[str]:
    return {owner["uid"] for child in _children(kube) for owner in child["metadata"].get("ownerReferences", [])}


def _assert_no_duplicates(kube: Kube) -> None:
    roles = Counter(
        (child["kind"], child["metadata"]["labels"].get("rltrain.dev/role", "")) for child in _children(kube)
    )
    assert all(count == 1 for count in roles.values()), roles
