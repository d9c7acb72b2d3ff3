"""A job outlives its head while no operator is there."""

import json

import pytest

from e2e.installation import Images, Operator
from e2e.kube import Kube, condition, message, progress
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, config_map
from e2e.volume import read_volume

pytestmark = pytest.mark.cluster


def test_job_resumes_from_its_checkpoint_and_ends_well_without_an_operator(
    kube: Kube, operator: Operator, images: Images
) -> None:
    name = "head-lost"
    manifest = example("cartpole-dqn", name, checkpoint__everySeconds=2, checkpoint__keep=100)
    manifest["spec"]["rollouts"] = {"replicas": 1}
    # Long fragments and few updates: this is about what a lost head costs, not about learning. At 500 steps a second
    # at most, whatever the machine, the head is lost long before the end.
    manifest["spec"]["env"] = {"id": ENV}
    manifest["spec"]["code"] = {"configMap": {"name": CONFIG_MAP}}
    few = {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    manifest["spec"]["config"] |= few
    manifest["spec"]["stop"] = {"envSteps": 6000}
    kube.apply(config_map(), manifest)
    kube.wait("both pods are there", lambda: len(kube.pods(name)) == 2, 60)
    operator.scale(0)
    try:
        kube.wait("a checkpoint", lambda: kube.job(name)["status"].get("checkpoint"), 180)
        head = kube.pods(name, "head")[0]["metadata"]["name"]
        rollout = kube.pods(name, "rollouts")[0]["metadata"]
        kube.delete("pod", head, "--wait=false")

        def resumed() -> dict[str, object] | None:
            now = progress(kube.job(name))
            return now if now.get("attempt", 0) >= 2 and now["phase"] == "Finished" else None

        last = kube.wait("the second attempt finishes", resumed, 300)
        assert last["resumedFromSteps"] > 0  # type: ignore[operator]
        kube.wait(
            "the pods are gone or done with no operator",
            lambda: all(pod["status"]["phase"] == "Succeeded" for pod in kube.pods(name)),
            90,
        )
        assert kube.pods(name, "rollouts")[0]["metadata"]["uid"] == rollout["uid"], "the worker rejoined in its pod"
        assert "Succeeded" not in str(kube.job(name)["status"].get("state")), "nobody was there to say so"
    finally:
        operator.scale(1)
    job = kube.wait_finished(name, timeout=90)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["stopReason"] == "env_steps"

    uid = job["metadata"]["uid"]
    steps = last["resumedFromSteps"]
    files = read_volume(kube, images.trainer, f"{name}-checkpoints", uid)
    saved = next(
        json.loads(text)
        for path, text in files.items()
        if path.endswith("checkpoint.json") and f"/{steps:012d}-" in f"/{path}"
    )
    results = [json.loads(line) for line in files["results.jsonl"].splitlines()]
    resumed_hashes = next(result["resumed"] for result in results if result.get("resumed"))
    assert resumed_hashes["hashes"] == saved["hashes"], "replay, priorities, optimizer step and epsilon as saved"
    assert {"replay", "priorities", "optimizer_step", "epsilon"} <= set(saved["hashes"])
    env_steps = [result["env_steps"] for result in results]
    assert env_steps == sorted(env_steps), "steps go on from the checkpoint, not from 0"
