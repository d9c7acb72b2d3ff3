"""The example manifests, as the README applies them: from `kubectl apply` to the deletion of their volumes."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli import rltrain, starting
from e2e.kube import ROOT, Kube, condition, message, progress, reason

pytestmark = pytest.mark.cluster

DQN, DDPPO = "cartpole-dqn", "cartpole-ddppo"
EACH = pytest.mark.parametrize("name", [DQN, DDPPO])


@pytest.fixture(scope="module", autouse=True)
def followed_logs(shared: Kube) -> Iterator["subprocess.Popen[str]"]:
    """Both examples applied at once; the logs of one, followed from before it has a pod."""
    for name in (DDPPO, DQN):
        shared.kubectl("apply", "-f", str(ROOT / f"examples/{name}.yaml"))
    with starting("logs", DQN, "-n", shared.namespace, "--follow") as follower:
        yield follower


@EACH
def test_both_at_once_succeed_by_their_return(shared: Kube, name: str) -> None:
    job = shared.wait_finished(name, timeout=600)

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["stopReason"] == "episode_return_mean"
    assert progress(job)["episodeReturnMean"] >= 450
    assert "episode_return_mean" in message(job, "Succeeded") + str(reason(job, "Succeeded"))
    assert job["status"]["checkpoint"]["envSteps"] == progress(job)["envSteps"]

    columns = shared.kubectl("get", "rltj", name).splitlines()
    assert [word in columns[0] for word in ("PLAN", "STATE", "STEPS", "RETURN", "READY", "AGE")] == [True] * 6
    assert "Succeeded" in columns[1]


def test_followed_logs_are_the_heads_and_end_with_the_job(followed_logs: "subprocess.Popen[str]") -> None:
    lines = followed_logs.communicate(timeout=60)[0].splitlines()

    assert followed_logs.returncode == 0
    assert lines
    assert {line.split(" | ")[0] for line in lines} == {"head"}


def test_status_and_logs_tell_of_a_finished_job(shared: Kube) -> None:
    here = ("-n", shared.namespace)

    told = json.loads(rltrain("status", DQN, *here, "-o", "json").stdout)
    assert (told["state"], told["progress"]["stop_reason"]) == ("Succeeded", "episode_return_mean")
    assert {DQN, DDPPO} <= set(rltrain("status", *here).stdout.split())
    assert len(rltrain("logs", DQN, *here, "--tail", "1").stdout.splitlines()) == 1


@EACH
def test_checkpoint_is_fetched_and_opens_on_this_machine(shared: Kube, tmp_path: Path, name: str) -> None:
    # The head has ended: a pod that may only read does it, in a namespace that admits restricted ones only.
    rltrain("fetch", name, "-n", shared.namespace, "--out", str(tmp_path / "fetched"))

    assert [pod for pod in shared.kubectl("get", "pods", "-o", "name").split() if "fetch" in pod] == []
    done = rltrain("evaluate", str(tmp_path / "fetched"), "--episodes", "10", "--seed", "7", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["episode_return_mean"] >= 400


@EACH
def test_finished_job_keeps_no_pod_running(shared: Kube, name: str) -> None:
    phases = ("Running", "Pending")
    shared.wait(
        "no pod of it runs", lambda: not [pod for pod in shared.pods(name) if pod["status"]["phase"] in phases], 60
    )


def test_deleting_a_job_leaves_only_its_volume_which_is_deleted_on_request(shared: Kube) -> None:
    here = ("-n", shared.namespace)

    assert f"{DQN}-checkpoints stays" in rltrain("delete", DQN, *here, "--wait").stdout
    shared.delete("rltj", DDPPO)

    kinds = "jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
    label = "app.kubernetes.io/managed-by=rltrain"
    shared.wait("no child is left", lambda: not shared.kubectl("get", kinds, "-l", label, "-o", "name").strip(), 90)
    assert sorted(shared.kubectl("get", "pvc", "-o", "name").split()) == [
        f"persistentvolumeclaim/{name}-checkpoints" for name in (DDPPO, DQN)
    ]
    assert rltrain("logs", DQN, *here, check=False).returncode == 2

    rltrain("delete", DQN, *here, "--purge")
    shared.wait_gone("pvc", f"{DQN}-checkpoints", 60)
