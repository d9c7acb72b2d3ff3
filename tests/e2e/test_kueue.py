"""Jobs in a queue of the real Kueue: one after the other, the more urgent first, each from its checkpoint."""

from collections.abc import Iterator

import pytest

from e2e import kueue
from e2e.installation import Images
from e2e.kube import JOB_LABEL, Kube, Object, condition, message, progress, reason
from e2e.manifests import example
from e2e.standin import standin
from e2e.user_code import CONFIG_MAP, ENV, config_map

# The time is for building Kueue, where that was never done.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]

QUEUE = "team"
URGENT = "e2e-urgent"
PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}, "value": 1000}


@pytest.fixture
def queues(kube: Kube) -> Iterator[Kube]:
    """A namespace in which Kueue decides over each Job, with a queue that has room for one training job."""
    name = kube.namespace
    kube.apply(PRIORITY)
    # Before there is Kueue: the operator finds it by itself.
    kube.apply(queued(standin("early", "localhost/nothing:1"), gang="Kueue"))
    early(kube, "NoQueueing")
    with kueue.installed():
        kube.kubectl("label", "namespace", name, f"{kueue.MANAGED}=true")
        early(kube, "Queued")
        kube.delete("rltj", "early")
        with kueue.queue(kube, QUEUE, cpu="300m"):
            yield kube
    kube.delete("priorityclass", URGENT)


def early(kube: Kube, expected: str) -> None:
    kube.wait(f"it says {expected}", lambda: reason(kube.job("early"), "ClusterReady") == expected, 60)


def queued(manifest: Object, **scheduling: str) -> Object:
    """The same job in the queue, of which two don't fit into it at once."""
    manifest["spec"]["scheduling"] = {"queueName": QUEUE, **scheduling}
    for role in ("head", "rollouts"):
        manifest["spec"].setdefault(role, {})["resources"] = {"requests": {"cpu": "100m"}}
    return manifest


def waits(kube: Kube, name: str) -> Object:
    def probe() -> Object | None:
        job = kube.job(name)
        return job if reason(job, "ClusterReady") == "Queued" and "quota" in message(job, "ClusterReady") else None

    return kube.wait(f"{name} waits in its queue", probe, 60)


def test_a_job_waits_its_turn_and_makes_way_for_a_more_urgent_one(queues: Kube, images: Images) -> None:
    kube = queues
    first = queued(example("cartpole-dqn", "first", checkpoint__everySeconds=3600))
    first["spec"] |= {"rollouts": {**first["spec"]["rollouts"], "replicas": 1}, "env": {"id": ENV}}
    first["spec"] |= {"code": {"configMap": {"name": CONFIG_MAP}}, "stop": {"envSteps": 100_000}}
    first["spec"]["config"] |= {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    kube.apply(config_map(), first)
    kube.wait_steps("first", 500, 180)
    head = kube.pods("first", "head")[0]
    assert head["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}, "as the flavor says"

    kube.apply(queued(standin("second", images.operator, life=3)))
    second = waits(kube, "second")
    assert second["status"]["state"] == "Pending"
    assert "insufficient" in message(second, "ClusterReady"), "in Kueue's own words"
    assert "startTime" not in second["status"]
    assert not kube.select("jobs", **{JOB_LABEL: "second"})

    kube.apply(queued(standin("third", images.operator, life=3), priorityClassName=URGENT))
    preempted = kube.wait("first is told to make way", lambda: kube.told("first", "Preempted"), 60)
    assert "preempted" in preempted.lower()
    job = kube.wait_finished("third", 120)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    first = kube.job("first")
    saved = first["status"]["checkpoint"]["envSteps"]
    assert saved >= 500

    steps = saved + 1000
    kube.kubectl("patch", "rltj", "first", "--type", "merge", "-p", f'{{"spec": {{"stop": {{"envSteps": {steps}}}}}}}')
    for name in ("second", "first"):
        job = kube.wait_finished(name, 240)
        assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["resumedFromSteps"] >= saved
    assert job["status"]["progress"]["envSteps"] >= steps
