"""The command line when a job doesn't go well: attempts, waiting, refusals."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.installation import Images
from e2e.kube import ROOT, Kube, Object, rltrain
from e2e.standin import standin
from rltrain.api.resolve import to_yaml

pytestmark = pytest.mark.cluster

NOWHERE = "localhost:1/no/such:image"


def written(folder: Path, manifest: Object) -> str:
    path = folder / f"{manifest['metadata']['name']}.yaml"
    path.write_text(to_yaml(manifest))
    return str(path)


@contextmanager
def following(kube: Kube, job: str, *args: str) -> Iterator["subprocess.Popen[str]"]:
    """`rltrain logs --follow` beside the test."""
    command = [str(ROOT / ".venv/bin/rltrain"), "logs", job, "-n", kube.namespace, "--follow", *args]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_followed_logs_go_on_with_the_next_attempt_and_end_with_the_cause(kube: Kube, images: Images) -> None:
    job = standin("attempts", images.trainer, life=5, exit_code=1, words="{}", runPolicy={"maxRestarts": 1})
    container = job["spec"]["head"]["template"]["spec"]["containers"][0]
    speak = 'import os\nprint("I am", os.environ["RLTRAIN_POD_NAME"], flush=True)\n'
    container["command"][-1] = speak + container["command"][-1]
    kube.apply(job)

    with following(kube, "attempts", "--role", "head") as follower:
        said, beside = follower.communicate(timeout=120)

    lines = said.splitlines()
    assert len(lines) == len(set(lines)) == 2, said
    assert all(line.startswith("head | I am attempts-head-0-") for line in lines)
    assert beside.splitlines()[-1].startswith("Failed: ")


def test_what_keeps_a_job_waiting_is_told_by_every_command(kube: Kube, images: Images, tmp_path: Path) -> None:
    here = ("-n", kube.namespace)
    rltrain("submit", written(tmp_path, standin("pending", NOWHERE, runPolicy={"startupDeadlineSeconds": 40})), *here)

    kube.wait("the reason", lambda: NOWHERE in rltrain("status", "pending", *here).stdout.splitlines()[1], 30)
    at_once = rltrain("logs", "pending", *here)
    assert at_once.stdout == ""
    assert NOWHERE in at_once.stderr

    ended = rltrain("status", "pending", *here, "--watch", check=False)
    assert ended.returncode == 1
    assert "Failed=True StartupDeadlineExceeded" in ended.stdout
    told = [line.partition("  ")[2] for line in ended.stdout.splitlines()]
    assert len(told) == len(set(told)), "a line that says nothing new"


def test_what_only_the_api_server_can_refuse_is_passed_on(kube: Kube, images: Images, tmp_path: Path) -> None:
    job = standin("changed", images.trainer)
    for role in ("head", "rollouts"):
        # Its pods stay where no kubelet has to be waited for at the end.
        job["spec"][role]["template"]["spec"]["nodeSelector"] = {"nowhere": "at-all"}
    rltrain("submit", written(tmp_path, job), "-n", kube.namespace)
    job["spec"] = {"plan": "DDPPO", "env": {"id": "CartPole-v1"}, "stop": {"envSteps": 1}, "workers": {"replicas": 1}}
    other = written(tmp_path, job)

    done = rltrain("submit", other, "-n", kube.namespace, check=False)
    nowhere = rltrain("submit", other, "-n", "no-such-namespace", check=False)

    assert (done.returncode, nowhere.returncode) == (2, 2)
    assert "plan can't be changed" in done.stderr
    assert "kubectl create namespace no-such-namespace" in nowhere.stderr
    assert "Traceback" not in done.stderr + nowhere.stderr
