"""Ape-X on a cluster: shards have pods of their own, and one that is lost in mid-training stops nothing."""

import json

import pytest

from e2e.kube import Kube, condition, progress
from e2e.manifests import example

pytestmark = pytest.mark.cluster


def test_ape_x_goes_on_over_a_killed_replay_pod_and_succeeds(kube: Kube) -> None:
    name = "apex"
    job = example(
        "cartpole-apex",
        name,
        rollouts={"replicas": 2},
        replay={"replicas": 1},
        stop={"envSteps": 60_000},
        checkpoint={"everySeconds": 10},
    )
    kube.apply(job)
    kube.wait_steps(name, 8000, timeout=300)
    roles = {role["name"]: role["desired"] for role in kube.job(name)["status"]["roles"]}
    assert roles == {"head": 1, "rollouts": 2, "replay": 1}

    former = kube.pods(name, "replay")[0]["metadata"]
    kube.delete("pod", former["name"], "--wait=false", "--grace-period=0", "--force")

    def another() -> bool:
        return any(pod["metadata"]["uid"] != former["uid"] for pod in kube.pods(name, "replay"))

    kube.wait("another replay pod", another, 120)
    trained = progress(kube.job(name))["trainedSteps"]

    def trains_again() -> bool:
        return bool(progress(kube.job(name))["trainedSteps"] > trained + 10_000)

    kube.wait("training with the new shards", trains_again, 240)

    head = kube.pods(name, "head")[0]["metadata"]["name"]
    results = f"/data/{kube.job(name)['metadata']['uid']}/results.jsonl"

    def both_are_accounted_for() -> bool:
        counters = json.loads(kube.kubectl("exec", head, "--", "tail", "-n", "1", results))["counters"]
        # Both shards were in that pod; their replacements may begin on it as well before Ray knows that it is gone.
        lost = counters["num_replay_shards_lost"]
        told = counters.get("num_replay_shards_restored", 0) + counters.get("num_replay_shards_emptied", 0)
        return bool(lost >= 2 and told >= 2)

    kube.wait("word of what became of both shards' contents", both_are_accounted_for, 120)

    finished = kube.wait_finished(name, timeout=300)
    assert condition(finished, "Succeeded") == "True"
    assert progress(finished)["envSteps"] >= 60_000
