"""The example manifests, as the README applies them, end well and leave a checkpoint that opens elsewhere."""

import json
from pathlib import Path

import pytest

from e2e.kube import ROOT, Kube, condition, message, progress, reason, rltrain
from e2e.manifests import example

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("plan", ["dqn", "ddppo"])
def test_example_succeeds_by_its_return_and_its_checkpoint_opens_on_this_machine(
    kube: Kube, tmp_path: Path, plan: str
) -> None:
    name = f"cartpole-{plan}"
    kube.kubectl("apply", "-f", str(ROOT / f"examples/{name}.yaml"))

    job = kube.wait_finished(name, timeout=600)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["stopReason"] == "episode_return_mean"
    assert progress(job)["episodeReturnMean"] >= 450
    assert "episode_return_mean" in message(job, "Succeeded") + str(reason(job, "Succeeded"))
    assert job["status"]["checkpoint"]["envSteps"] == progress(job)["envSteps"]

    columns = kube.kubectl("get", "rltj", name).splitlines()
    assert [word in columns[0] for word in ("PLAN", "STATE", "STEPS", "RETURN", "READY", "AGE")] == [True] * 6
    assert "Succeeded" in columns[1]

    rltrain("fetch", name, "-n", kube.namespace, "--out", str(tmp_path / "fetched"))
    done = rltrain("evaluate", str(tmp_path / "fetched"), "--episodes", "10", "--seed", "7", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["mean"] >= 400


def test_finished_job_keeps_no_pod_running_and_deleting_it_leaves_only_its_volume(kube: Kube) -> None:
    name = "short"
    kube.apply(example("cartpole-ddppo", name, stop={"envSteps": 3000}))
    kube.wait_finished(name, timeout=300)

    kube.wait("no pod of it runs", lambda: not _running(kube, name), 60, name)
    kube.delete("rltj", name)

    kinds = "jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
    label = "app.kubernetes.io/managed-by=rltrain"
    kube.wait("no child is left", lambda: not kube.kubectl("get", kinds, "-l", label, "-o", "name").strip(), 90)
    assert kube.kubectl("get", "pvc", "-o", "name").split() == [f"persistentvolumeclaim/{name}-checkpoints"]


def _running(kube: Kube, job: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in kube.pods(job) if pod["status"]["phase"] in ("Running", "Pending")]
