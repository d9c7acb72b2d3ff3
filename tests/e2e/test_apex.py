"""Ape-X on a cluster: shards and learners have pods of their own, and the loss of one in mid-training stops nothing."""

import json

import pytest

from e2e.kube import Kube, condition, progress
from e2e.manifests import example

pytestmark = pytest.mark.cluster


def test_ape_x_goes_on_over_a_killed_replay_pod_and_a_killed_learner_and_succeeds(kube: Kube) -> None:
    name = "apex"
    job = example(
        "cartpole-apex",
        name,
        rollouts={"replicas": 1},
        replay={"replicas": 1},
        learners={"replicas": 2},
        stop={"envSteps": 60_000},
        checkpoint={"everySeconds": 10},
    )
    kube.apply(job)
    kube.wait_steps(name, 8000, timeout=300)
    roles = {role["name"]: role["desired"] for role in kube.job(name)["status"]["roles"]}
    assert roles == {"head": 1, "rollouts": 1, "replay": 1, "learners": 2}
    head = kube.pods(name, "head")[0]["metadata"]["name"]
    results = f"/data/{kube.job(name)['metadata']['uid']}/results.jsonl"

    def counters() -> dict[str, int]:
        found: dict[str, int] = json.loads(kube.kubectl("exec", head, "--", "tail", "-n", "1", results))["counters"]
        return found

    def lose(role: str) -> None:
        """A pod of the role, at once; another is there and training goes on when this returns."""
        former = kube.pods(name, role)[0]["metadata"]
        kube.delete("pod", former["name"], "--wait=false", "--grace-period=0", "--force")
        kube.wait(
            f"another {role} pod",
            lambda: all(pod["metadata"]["uid"] != former["uid"] for pod in kube.pods(name, role)),
            120,
        )
        trained = progress(kube.job(name))["trainedSteps"]
        kube.wait("training with it", lambda: progress(kube.job(name))["trainedSteps"] > trained + 10_000, 240)

    lose("replay")

    def shards_are_accounted_for() -> bool:
        now = counters()
        told = now.get("num_replay_shards_restored", 0) + now.get("num_replay_shards_emptied", 0)
        # Both shards were in that pod; their replacements may begin on it as well before Ray knows that it is gone.
        return now.get("num_replay_shards_lost", 0) >= 2 and told >= 2

    kube.wait("word of what became of both shards' contents", shards_are_accounted_for, 120)

    lose("learners")
    kube.wait("word of the lost learner", lambda: counters().get("num_learners_lost", 0) >= 1, 60)

    finished = kube.wait_finished(name, timeout=300)
    assert condition(finished, "Succeeded") == "True"
    assert progress(finished)["envSteps"] >= 60_000
