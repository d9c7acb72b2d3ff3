"""The command line on a cluster: from submitting a job to deleting its volume."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from e2e.kube import ROOT, Kube, progress, rltrain
from e2e.manifests import example

pytestmark = pytest.mark.cluster


def written(folder: Path, name: str, file: str = "cartpole-dqn", **changes: object) -> str:
    path = folder / f"{name}.yaml"
    YAML(typ="safe").dump(example(file, name, **changes), path)
    return str(path)


def test_job_is_submitted_followed_fetched_and_deleted_with_its_volume(kube: Kube, tmp_path: Path) -> None:
    name, namespace = "cli", ("-n", kube.namespace)
    manifest = written(tmp_path, name, stop={"envSteps": 600})

    with subprocess.Popen(
        [str(ROOT / ".venv/bin/rltrain"), "submit", manifest, *namespace, "--wait"],
        stdout=subprocess.PIPE,
        text=True,
    ) as submit:
        kube.wait("the job is there", lambda: kube.get("rltj", name), 30)
        # With follow the logs wait for the pod, which isn't there yet, and end with the job.
        followed = rltrain("logs", name, *namespace, "--follow")
        story = submit.communicate(timeout=60)[0].splitlines()
    assert submit.returncode == 0
    assert len(story) == len(set(story)), "one line for each change"
    assert any("Succeeded=True" in line for line in story)
    lines = followed.stdout.splitlines()
    assert lines
    assert {line.split(" | ")[0] for line in lines} == {"head"}

    told = json.loads(rltrain("status", name, *namespace, "-o", "json").stdout)
    assert (told["state"], told["progress"]["stop_reason"]) == ("Succeeded", "env_steps")
    assert name in rltrain("status", *namespace).stdout
    tail = rltrain("logs", name, *namespace, "--tail", "1").stdout
    assert len(tail.splitlines()) == 1

    # Its head has ended: a pod that may only read does it, in a namespace that admits restricted ones only.
    rltrain("fetch", name, *namespace, "--out", str(tmp_path / "fetched"))
    assert [pod for pod in kube.kubectl("get", "pods", "-o", "name").split() if "fetch" in pod] == []
    evaluated = rltrain("evaluate", str(tmp_path / "fetched"), "--episodes", "1", "--json")
    assert json.loads(evaluated.stdout.splitlines()[-1])

    assert f"{name}-checkpoints stays" in rltrain("delete", name, *namespace, "--wait").stdout
    gone = rltrain("logs", name, *namespace, check=False)
    assert gone.returncode == 2
    rltrain("delete", name, *namespace, "--purge")
    kube.wait("the volume's claim is gone", lambda: not kube.kubectl("get", "pvc", "-o", "name").strip(), 60)


def test_checkpoint_is_fetched_through_the_head_while_it_trains(kube: Kube, tmp_path: Path) -> None:
    name = "running"
    kube.apply(example("cartpole-ddppo", name, stop={"timeSeconds": 3000}, checkpoint__everySeconds=2))
    kube.wait("a checkpoint", lambda: kube.job(name).get("status", {}).get("checkpoint"), 240, name)

    rltrain("fetch", name, "-n", kube.namespace, "--out", str(tmp_path / "fetched"))

    (checkpoint,) = (tmp_path / "fetched/checkpoints").iterdir()
    assert 0 < int(checkpoint.name.split("-")[0]) <= progress(kube.wait_steps(name, 1, 60))["envSteps"] + 10_000
    waited = rltrain("delete", name, "-n", kube.namespace, "--wait", "--purge")
    assert "deleted" in waited.stdout
    assert kube.pods(name) == []


def test_failed_job_is_the_exit_code_of_its_submission_and_says_why(kube: Kube, tmp_path: Path) -> None:
    manifest = written(tmp_path, "no-env", env={"id": "CartPool-v1"})

    done = rltrain("submit", manifest, "-n", kube.namespace, "--wait", check=False)

    assert done.returncode == 1
    assert "Failed=True UnknownEnvironment" in done.stdout
    assert "CartPool-v1" in rltrain("status", "no-env", "-n", kube.namespace).stdout


def test_user_without_rights_is_told_what_is_missing(kube: Kube, tmp_path: Path) -> None:
    kube.kubectl("create", "serviceaccount", "guest")
    token = kube.kubectl("create", "token", "guest").strip()
    own = json.loads(kube.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    own["users"][0]["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(json.dumps(own))
    as_guest = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}

    done = rltrain("status", "-n", kube.namespace, env=as_guest, check=False)

    assert done.returncode == 3
    assert "cannot list resource" in done.stderr
