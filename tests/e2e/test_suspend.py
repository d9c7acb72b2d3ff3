"""A suspended job has no pods, and goes on from the checkpoint that it saved."""

import pytest

from e2e.kube import JOB_LABEL, Kube, condition, message, progress, reason
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, config_map

pytestmark = pytest.mark.cluster


def test_a_job_saves_leaves_and_goes_on_as_edited_and_toggling_ends_with_one_head(kube: Kube) -> None:
    name = "resting"
    # Checkpoints by the clock come too seldom: the one that it goes on from is saved because it is suspended.
    manifest = example("cartpole-dqn", name, checkpoint__everySeconds=3600)
    manifest["spec"]["rollouts"] = {"replicas": 1}
    manifest["spec"]["env"] = {"id": ENV}
    manifest["spec"]["code"] = {"configMap": {"name": CONFIG_MAP}}
    manifest["spec"]["config"] |= {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    manifest["spec"]["stop"] = {"envSteps": 100_000}
    kube.apply(config_map(), manifest)
    kube.wait_steps(name, 500, 180)
    patch(kube, name, '{"spec": {"suspend": true}}')
    kube.wait("no pod is left", lambda: not kube.select("pods", **{JOB_LABEL: name}), 90)
    job = kube.wait(
        "it says so", lambda: found if reason(found := kube.job(name), "Training") == "Suspended" else None, 30
    )
    saved = job["status"]["checkpoint"]["envSteps"]
    assert saved >= 500
    assert f"at {saved} env steps" in message(job, "Training")
    assert job["status"]["state"] == "Suspended"
    assert not kube.select("jobs", **{JOB_LABEL: name}), "nothing is left that could make pods"

    steps = saved + 1000
    patch(
        kube, name, f'{{"spec": {{"suspend": false, "stop": {{"envSteps": {steps}}}, "rollouts": {{"replicas": 2}}}}}}'
    )
    kube.wait("both workers are there", lambda: len(kube.pods(name, "rollouts")) == 2, 60)
    for wanted in ("true", "false") * 5:
        patch(kube, name, f'{{"spec": {{"suspend": {wanted}}}}}')
    job = kube.wait_finished(name, 240)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["resumedFromSteps"] >= saved
    assert progress(job)["envSteps"] >= steps


def patch(kube: Kube, name: str, merge: str) -> None:
    kube.kubectl("patch", "rltj", name, "--type", "merge", "-p", merge)
