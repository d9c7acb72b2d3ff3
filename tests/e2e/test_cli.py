"""The command line on a cluster, where no training is needed to see what it does."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli import rltrain, starting, written
from e2e.installation import Images
from e2e.kube import Kube
from e2e.standin import standin

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def followed(shared: Kube, images: Images) -> Iterator["subprocess.Popen[str]"]:
    """The head's logs of a job that fails twice, followed beside the other tests of this file."""
    job = standin("attempts", images.operator, life=1, exit_code=1, words="{}", runPolicy={"maxRestarts": 1})
    container = job["spec"]["head"]["template"]["spec"]["containers"][0]
    speak = 'import os\nprint("I am", os.environ["RLTRAIN_POD_NAME"], flush=True)\n'
    container["command"][-1] = speak + container["command"][-1]
    shared.apply(job)
    with starting("logs", "attempts", "-n", shared.namespace, "--follow", "--role", "head") as follower:
        yield follower


def test_submission_tells_each_change_once_and_ends_with_the_jobs_success(
    shared: Kube, images: Images, tmp_path: Path
) -> None:
    manifest = written(tmp_path, standin("submitted", images.operator, life=1))

    done = rltrain("submit", manifest, "-n", shared.namespace, "--wait")

    story = done.stdout.splitlines()
    assert len(story) == len(set(story)), "one line for each change"
    assert any("Succeeded=True" in line for line in story)


def test_what_only_the_api_server_can_refuse_is_passed_on(shared: Kube, images: Images, tmp_path: Path) -> None:
    job = standin("changed", images.operator)
    rltrain("submit", written(tmp_path, job), "-n", shared.namespace)
    job["spec"] = {"plan": "DDPPO", "env": {"id": "CartPole-v1"}, "stop": {"envSteps": 1}, "workers": {"replicas": 1}}
    other = written(tmp_path, job)

    done = rltrain("submit", other, "-n", shared.namespace, check=False)
    nowhere = rltrain("submit", other, "-n", "no-such-namespace", check=False)

    assert (done.returncode, nowhere.returncode) == (2, 2)
    assert "plan can't be changed" in done.stderr
    assert "kubectl create namespace no-such-namespace" in nowhere.stderr
    assert "Traceback" not in done.stderr + nowhere.stderr


def test_user_without_rights_is_told_what_is_missing(shared: Kube, tmp_path: Path) -> None:
    shared.kubectl("create", "serviceaccount", "guest")
    token = shared.kubectl("create", "token", "guest").strip()
    own = json.loads(shared.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    own["users"][0]["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(json.dumps(own))

    done = rltrain("status", "-n", shared.namespace, env={"KUBECONFIG": str(tmp_path / "kubeconfig")}, check=False)

    assert done.returncode == 3
    assert "cannot list resource" in done.stderr


def test_followed_logs_go_on_with_the_next_attempt_and_end_with_the_cause(followed: "subprocess.Popen[str]") -> None:
    said, beside = followed.communicate(timeout=120)

    lines = said.splitlines()
    assert len(lines) == len(set(lines)) == 2, said
    assert all(line.startswith("head | I am attempts-head-0-") for line in lines)
    assert beside.splitlines()[-1].startswith("Failed: ")
