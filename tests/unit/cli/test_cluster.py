"""What goes wrong between here and an API server is told with the server's address, and exit code 3."""

import socket
from pathlib import Path

import pytest

from unit.api.conftest import manifest
from unit.cli.conftest import JOBS, ApiServer, Command, condition, job, use_kubeconfig


def test_no_kubeconfig_is_told(rltrain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_kubeconfig(tmp_path, monkeypatch, None)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    done = rltrain("status")

    assert done.code == 3
    assert f"there is no kubeconfig {tmp_path / 'kubeconfig'}; set KUBECONFIG" in done.err


@pytest.mark.parametrize(
    "text",
    ["", "just text", "{{{", "a: [1", "[1, 2]", "kind: Config", "\0", "current-context: x\ncontexts: [{name: x}]"],
)
def test_kubeconfig_that_is_none_is_told_in_one_sentence(
    rltrain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    use_kubeconfig(tmp_path, monkeypatch, None).write_text(text)

    done = rltrain("status")

    assert done.code == 3
    assert f"the kubeconfig {tmp_path / 'kubeconfig'} can't be used: " in done.err
    assert len(done.err.splitlines()) == 1


def test_server_that_does_not_answer_is_named_with_its_context(
    rltrain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    use_kubeconfig(tmp_path, monkeypatch, f"http://127.0.0.1:{port}")

    done = rltrain("status")

    assert done.code == 3
    assert f"http://127.0.0.1:{port} (context lab) doesn't answer: Connection refused" in done.err
    assert len(done.err.splitlines()) == 1


def test_unknown_context_gets_the_nearest(rltrain: Command, api: ApiServer) -> None:
    done = rltrain("status", "--context", "cluod")

    assert done.code == 3
    assert "did you mean cloud" in done.err


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, {"message": "Unauthorized"}, 3, "refused the credentials"),
        (403, {"message": 'User "eve" cannot list resource "rltrainingjobs"'}, 3, 'User "eve" cannot list'),
        (404, "404 page not found\n", 3, "helm install"),
        (503, {"message": "etcd is away"}, 3, "etcd is away"),
        (500, "<html>proxy</html>", 3, "500"),
        (429, {"message": "slow down"}, 3, "slow down"),
        (200, "<html>a login page</html>", 3, "isn't the Kubernetes API at"),
        (200, "[1]", 3, "isn't the Kubernetes API at"),
    ],
)
def test_refusal_is_a_sentence(
    rltrain: Command, api: ApiServer, status: int, body: object, code: int, words: str
) -> None:
    api.refusals["/apis"] = (status, body)

    done = rltrain("status")

    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


def test_missing_job_gets_the_nearest_name(rltrain: Command, api: ApiServer) -> None:
    api.put(f"{JOBS}/cartpole", job())

    for command in ("status", "logs", "fetch", "delete"):
        done = rltrain(command, "cartpol")
        assert done.code == 2, command
        assert "did you mean cartpole" in done.err, command


def test_bad_manifest_is_refused_before_anything_is_asked_of_the_cluster(
    rltrain: Command, api: ApiServer, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(manifest("learning_rate: 1"))

    done = rltrain("submit", tmp_path / "job.yaml")

    assert done.code == 2
    assert "spec.config.lr" in done.err
    assert api.seen == []


def test_submit_applies_only_what_was_written_and_is_strict(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(manifest("config: {lr: 1e-3}"))

    done = rltrain("submit", tmp_path / "job.yaml", "--set", "seed=3")

    assert done.code == 0
    assert "default/cartpole created" in done.out
    method, path, body = api.seen[-1]
    assert (method, path) == ("PATCH", f"{JOBS}/cartpole")
    assert body["spec"] == {
        "plan": "DQN",
        "env": {"id": "CartPole-v1"},
        "stop": {"envSteps": 2000},
        "config": {"lr": 1e-3},
        "seed": 3,
    }


def test_all_jobs_of_a_file_are_submitted_and_the_first_failure_is_the_exit_code(
    rltrain: Command, api: ApiServer, tmp_path: Path
) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\n"
    jobs = [manifest().replace("cartpole", name) for name in ("a", "b", "c")]
    (tmp_path / "jobs.yaml").write_text("---\n".join([*jobs, other]))
    for name, kind in (("a", "Succeeded"), ("b", "Failed"), ("c", "Succeeded")):
        api.put(f"{JOBS}/{name}", job(conditions=[condition(kind, "True", "DeadlineExceeded", "It ended.")]))

    done = rltrain("submit", tmp_path / "jobs.yaml", "--wait")

    assert [path for method, path, _ in api.seen if method == "PATCH"] == [f"{JOBS}/{name}" for name in "abc"]
    assert "ConfigMap is left to kubectl" in done.err
    assert done.code == 124


def test_no_job_of_a_file_is_submitted_when_one_is_wrong(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    text = f"{manifest()}---\n{manifest('seed: -1').replace('cartpole', 'b')}"
    (tmp_path / "jobs.yaml").write_text(text)

    assert rltrain("submit", tmp_path / "jobs.yaml").code == 2
    assert api.seen == []


def test_what_the_server_refuses_of_a_manifest_is_passed_on(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(manifest())
    causes = [{"field": "spec.plan", "message": "plan can't be changed"}, {"field": "spec.x", "message": "no"}]
    api.refusals[f"{JOBS}/cartpole"] = (422, {"message": "invalid", "details": {"causes": causes}})

    done = rltrain("submit", tmp_path / "job.yaml")

    assert done.code == 2
    assert "spec.plan: plan can't be changed" in done.err
    assert "spec.x: no" in done.err
