"""What can't work ends in a condition that names the cause, and the operator stays well."""

import json
from collections.abc import Iterator

import pytest

from e2e.installation import Operator
from e2e.kube import Kube, Object, condition, message, reason
from e2e.manifests import example

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def operator_stays_well(operator: Operator) -> Iterator[None]:
    before = operator.restarts()
    yield
    assert operator.restarts() == before
    assert all(pod["status"]["phase"] == "Running" for pod in operator.pods())


def test_misspelt_key_is_refused_by_kubectl_apply(kube: Kube) -> None:
    manifest = example("cartpole-dqn", "typo", config__learning_rate=0.1)

    done = kube.run("apply", "--validate=strict", "-f", "-", stdin=_json(manifest))

    assert done.returncode != 0
    assert "learning_rate" in done.stderr
    assert kube.get("rltj", "typo") is None


def test_what_only_the_models_can_see_ends_in_accepted_false(kube: Kube) -> None:
    kube.apply(example("cartpole-dqn", "small-buffer", config__buffer_size=10))

    job = kube.wait("Accepted=False", lambda: _when(kube, "small-buffer", "Accepted", "False"), 30, "small-buffer")

    assert "buffer_size" in message(job, "Accepted")
    assert condition(job, "Failed") == "True"
    assert kube.pods("small-buffer") == []


def test_environment_that_does_not_exist_fails_the_job_by_name(kube: Kube) -> None:
    kube.apply(example("cartpole-dqn", "no-env", env={"id": "CartPool-v1"}))

    job = kube.wait_finished("no-env", timeout=180)

    assert (condition(job, "Failed"), reason(job, "Failed")) == ("True", "UnknownEnvironment")
    assert "CartPool-v1" in message(job, "Failed")
    assert "CartPole-v1" in message(job, "Failed")


def test_image_that_does_not_exist_is_told_within_30_s_and_fails_at_the_startup_deadline(kube: Kube) -> None:
    manifest = example("cartpole-dqn", "no-image", image="localhost:1/no/such:image")
    manifest["spec"]["runPolicy"] = {"startupDeadlineSeconds": 60}
    kube.apply(manifest)

    job = kube.wait("the pull error in a condition", lambda: _pull_error(kube, "no-image"), 30, "no-image")
    assert "localhost:1/no/such:image" in message(job, "ClusterReady")

    job = kube.wait_finished("no-image", timeout=90)
    assert reason(job, "Failed") == "StartupDeadlineExceeded"
    assert "localhost:1/no/such:image" in message(job, "Failed")
    kube.wait("no pod is left", lambda: not kube.pods("no-image"), 60, "no-image")


def test_request_that_no_node_can_hold_is_told_with_the_schedulers_words(kube: Kube) -> None:
    manifest = example("cartpole-dqn", "too-big", head__resources={"limits": {"nvidia.com/gpu": 1}})
    manifest["spec"]["runPolicy"] = {"startupDeadlineSeconds": 45}
    kube.apply(manifest)

    job = kube.wait("Unschedulable", lambda: _because(kube, "too-big", "Unschedulable"), 30, "too-big")
    assert "nvidia.com/gpu" in message(job, "ClusterReady")

    job = kube.wait_finished("too-big", timeout=90)
    assert reason(job, "Failed") == "StartupDeadlineExceeded"
    assert "nvidia.com/gpu" in message(job, "Failed")


def _pull_error(kube: Kube, name: str) -> Object | None:
    job = kube.job(name)
    return job if reason(job, "ClusterReady") in ("ErrImagePull", "ImagePullBackOff", "ImagePullFailed") else None


def _because(kube: Kube, name: str, why: str) -> Object | None:
    job = kube.job(name)
    return job if reason(job, "ClusterReady") == why else None


def _when(kube: Kube, name: str, kind: str, status: str) -> Object | None:
    job = kube.job(name)
    return job if condition(job, kind) == status else None


def _json(manifest: Object) -> str:
    return json.dumps(manifest)
