"""Two jobs at once, namesakes in quick succession, and an operator that dies halfway: no duplicates, no leftovers."""

import json
from collections import Counter

import pytest

from e2e.installation import Operator
from e2e.kube import Kube, Object, condition, message
from e2e.manifests import example

pytestmark = pytest.mark.cluster

CHILDREN = "jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"


def test_two_jobs_at_once_both_end_well(kube: Kube) -> None:
    kube.apply(
        example("cartpole-dqn", "one", stop={"envSteps": 3000}),
        example("cartpole-ddppo", "two", stop={"envSteps": 3000}),
    )
    for name in ("one", "two"):
        job = kube.wait_finished(name, timeout=300)
        assert condition(job, "Succeeded") == "True", message(job, "Failed")


def test_namesake_applied_at_once_after_a_delete_50_times_leaves_one_job_that_starts_fresh(kube: Kube) -> None:
    name = "again"
    manifest = example("cartpole-dqn", name, stop={"envSteps": 2000})
    kube.apply(manifest)
    kube.wait("its head is being made", lambda: kube.pods(name, "head"), 60, name)
    for _ in range(50):
        kube.delete("rltj", name, "--wait=false")
        kube.apply(manifest)

    job = kube.wait_finished(name, timeout=400)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert job["status"]["progress"]["attempt"] == 1
    assert job["status"]["progress"].get("resumedFromSteps") is None, "a namesake starts fresh"
    kube.wait("only the last one's children are left", lambda: _owners(kube) == {job["metadata"]["uid"]}, 120, name)
    _assert_no_duplicates(kube)


@pytest.mark.parametrize("first_seen", ["service", "job"])
def test_operator_killed_between_two_applies_of_a_job_finishes_it_after_its_restart(
    kube: Kube, operator: Operator, first_seen: str
) -> None:
    name = "halfway"
    kube.apply(example("cartpole-ddppo", name, stop={"envSteps": 2000}))
    kube.wait(f"the first {first_seen}", lambda: kube.kubectl("get", first_seen, "-o", "name").strip(), 60, name)
    operator.kill()

    job = kube.wait_finished(name, timeout=300)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    _assert_no_duplicates(kube)


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
