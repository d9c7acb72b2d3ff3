"""Ape-X on a cluster: shards and learners have pods of their own, and the loss of one in mid-training stops nothing."""

import json
from collections.abc import Callable

import pytest

from e2e.kube import Kube, condition, progress
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, HURRY, config_map

pytestmark = pytest.mark.cluster


def test_ape_x_goes_on_over_a_killed_replay_pod_and_a_killed_learner_and_succeeds(kube: Kube) -> None:
    name = "apex"
    job = example(
        "cartpole-apex",
        name,
        # At most 100 steps a second until it may hurry: the processors are the new pods', and the end comes after.
        env={"id": ENV, "kwargs": {"seconds": 0.01}},
        code={"configMap": {"name": CONFIG_MAP}},
        config__timesteps_per_iteration=200,
        config__learning_starts=500,
        rollouts={"replicas": 1},
        replay={"replicas": 1},
        learners={"replicas": 2},
        stop={"envSteps": 40_000},
        checkpoint={"everySeconds": 10},
    )
    kube.apply(config_map(), job)
    kube.wait_steps(name, 1000, timeout=300)
    roles = {role["name"]: role["desired"] for role in kube.job(name)["status"]["roles"]}
    assert roles == {"head": 1, "rollouts": 1, "replay": 1, "learners": 2}
    head = kube.pods(name, "head")[0]["metadata"]["name"]
    results = f"/data/{kube.job(name)['metadata']['uid']}/results.jsonl"

    def counters() -> dict[str, int]:
        found: dict[str, int] = json.loads(kube.kubectl("exec", head, "--", "tail", "-n", "1", results))["counters"]
        return found

    def lose(role: str, accounted: Callable[[dict[str, int]], bool]) -> None:
        """A pod of the role, at once; its loss is told and training goes on after that when this returns."""
        former = kube.pods(name, role)[0]["metadata"]
        kube.delete("pod", former["name"], "--wait=false", "--grace-period=0", "--force")
        kube.wait(
            f"another {role} pod",
            lambda: all(pod["metadata"]["uid"] != former["uid"] for pod in kube.pods(name, role)),
            120,
        )
        kube.wait(f"word of what is lost with the {role} pod", lambda: accounted(counters()), 240)
        trained = counters()["num_env_steps_trained"]
        # More than what was on its way: 16 batches of 64.
        kube.wait("training with it", lambda: counters()["num_env_steps_trained"] > trained + 2000, 120)

    def both_shards(now: dict[str, int]) -> bool:
        told = now.get("num_replay_shards_restored", 0) + now.get("num_replay_shards_emptied", 0)
        # Both shards were in that pod; their replacements may begin on it as well before Ray knows that it is gone.
        return now.get("num_replay_shards_lost", 0) >= 2 and told >= 2

    lose("replay", both_shards)
    lose("learners", lambda now: now.get("num_learners_lost", 0) >= 1)

    kube.kubectl("exec", kube.pods(name, "rollouts")[0]["metadata"]["name"], "--", "touch", HURRY)
    finished = kube.wait_finished(name, timeout=300)
    assert condition(finished, "Succeeded") == "True"
    assert progress(finished)["envSteps"] >= 40_000
