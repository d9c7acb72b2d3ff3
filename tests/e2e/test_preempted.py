"""A job's pods have to go for the cluster's sake: it is told why, costs no restart, and goes on from what it saved."""

from collections.abc import Iterator

import pytest

from e2e.installation import Images
from e2e.kube import Kube, Object, condition, message, progress, reason
from e2e.manifests import example
from e2e.pods import script_pod
from e2e.user_code import CONFIG_MAP, ENV, HURRY, config_map

pytestmark = pytest.mark.cluster

NAME = "yielding"
URGENT = "e2e-more-important"
PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}, "value": 1000}


@pytest.fixture
def important(kube: Kube) -> Iterator[str]:
    """The name of a priority above that of all else."""
    kube.apply(PRIORITY)
    yield URGENT
    kube.delete("priorityclass", URGENT)


def most_of_the_node(kube: Kube) -> Object:
    """Resources of which a node has room for one, and not for two."""
    (room,) = kube.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.cpu}").split()
    milli = int(room.removesuffix("m")) if room.endswith("m") else int(room) * 1000
    return {"requests": {"cpu": f"{milli * 55 // 100}m"}}


def waits_for_room(kube: Kube, why: str) -> Object:
    """The job once its head has no place, in the scheduler's words."""

    def probe() -> Object | None:
        job = kube.job(NAME)
        return job if reason(job, "ClusterReady") == "Unschedulable" and why in message(job, "ClusterReady") else None

    return kube.wait(f"{NAME} says that {why}", probe, 60)


def goes_on(kube: Kube, job: Object) -> None:
    """Wait until the next head trains from the checkpoint that the one before has saved."""
    saved = job["status"]["checkpoint"]["envSteps"]
    assert job["status"]["state"] == "Recovering"

    def trains() -> bool:
        now = progress(kube.job(NAME))
        return bool(now.get("resumedFromSteps") == saved and now["envSteps"] > saved + 200)

    kube.wait(f"{NAME} trains on from {saved}", trains, 180)


def test_a_preempted_and_a_drained_job_goes_on_where_it_was_and_neither_is_a_failure(
    kube: Kube, images: Images, important: str
) -> None:
    most = most_of_the_node(kube)
    job = example(
        "cartpole-dqn",
        NAME,
        # At most 100 steps a second until it may hurry: it is far from its end until then.
        env={"id": ENV, "kwargs": {"seconds": 0.01}},
        code={"configMap": {"name": CONFIG_MAP}},
        rollouts={"replicas": 1},
        head__resources=most,
        stop={"envSteps": 20_000},
        # What it goes on from is saved because its pod has to go.
        checkpoint={"everySeconds": 3600},
        # The first failure would be the last.
        runPolicy={"maxRestarts": 0},
    )
    job["spec"]["config"] |= {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    kube.apply(config_map(), job)
    kube.wait_steps(NAME, 300, 240)
    (head,) = kube.pods(NAME, "head")

    urgent = script_pod("urgent", images.operator, "import time; time.sleep(3600)")
    urgent["spec"] |= {"priorityClassName": important}
    urgent["spec"]["containers"][0]["resources"] = most
    kube.apply(urgent)
    words = kube.wait("it is told", lambda: kube.told(NAME, "Preempted"), 60)
    assert head["metadata"]["name"] in words
    assert "preempting to accommodate a higher priority pod" in words, "in the scheduler's own words"
    job = waits_for_room(kube, "Insufficient cpu")
    assert job["status"]["checkpoint"]["envSteps"] >= 300
    kube.delete("pod", "urgent")
    goes_on(kube, job)

    node = head["spec"]["nodeName"]
    try:
        drain = ("drain", node, "--delete-emptydir-data", "--timeout=90s")
        kube.kubectl(*drain, f"--pod-selector=rltrain.dev/job={NAME}")
        words = kube.wait("it is told", lambda: kube.told(NAME, "Evicted"), 30)
        assert "Eviction API: evicting" in words
        job = waits_for_room(kube, "unschedulable")
    finally:
        kube.kubectl("uncordon", node)
    goes_on(kube, job)

    (rollouts,) = kube.pods(NAME, "rollouts")
    kube.kubectl("exec", rollouts["metadata"]["name"], "--", "touch", HURRY)
    job = kube.wait_finished(NAME, 180)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["attempt"] == 3
    assert {role["name"]: role["failed"] for role in job["status"]["roles"]}["head"] == 0
    assert "restarts" not in job["status"], "nothing counts"
