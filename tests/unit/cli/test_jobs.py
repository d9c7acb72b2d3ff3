"""What a job's status means for whoever asked: a reason, an exit code, JSON."""

from typing import Any

import pytest

from rltrain.api.finite import finite
from rltrain.api.load import validate
from rltrain.cli.jobs import JobView, age
from rltrain_operator.render import OperatorConfig, render
from unit.cli.conftest import Object, condition, job

ACCEPTED = condition("Accepted", "True", "ManifestValid", "The manifest is valid.")
WAITING = condition("ClusterReady", "False", "PodsStarting", "Waiting for pods: head 0/1 ready.")
READY = condition("ClusterReady", "True", "PodsReady", "All pods are ready.")
STARTING = condition("Training", "False", "WaitingForCluster", "Training begins once the pods are ready.")


def seen(*conditions: Object, **status: Any) -> JobView:
    metadata = {"name": "x", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return JobView({**job(conditions=list(conditions), **status), "metadata": metadata})


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (condition("Succeeded", "True", "StopCriterionReached", "Done."), 0),
        (condition("Failed", "True", "TrainingFailed", "NaN."), 1),
        (condition("Failed", "True", "DeadlineExceeded", "Late."), 124),
    ],
)
def test_result_of_a_job_is_an_exit_code(ended: Object, code: int) -> None:
    job = seen(ACCEPTED, WAITING, ended)

    assert job.finished
    assert job.exit_code == code
    assert job.why == ended["message"]


def test_why_is_the_first_condition_that_is_wanting() -> None:
    assert seen(ACCEPTED, WAITING, STARTING).why == WAITING["message"]
    assert seen(ACCEPTED, READY, STARTING).why == STARTING["message"]
    assert seen(WAITING).why == WAITING["message"]
    assert "operator" in (seen().why or "")


def test_json_holds_neither_nan_nor_infinity() -> None:
    progress = {"phase": "Training", "attempt": 1, "updatedAt": "", "episodeReturnMean": float("nan")}

    assert seen(progress=progress).to_json()["progress"]["episode_return_mean"] is None
    assert finite({"a": [float("nan"), 1.5], "b": float("-inf")}) == {"a": [None, 1.5], "b": None}


@pytest.mark.parametrize("storage", [{}, {"claim": "mine"}])
def test_claim_is_the_one_that_the_operator_lets_the_head_mount(storage: Object) -> None:
    spec = {**job()["spec"], "checkpoint": {"storage": storage}}
    metadata = {"name": "x", "namespace": "default", "uid": "u"}
    made_for, problems = validate({**job(), "metadata": metadata, "spec": spec})
    assert made_for is not None, problems

    head = render(made_for, OperatorConfig("trainer"))[-1]["spec"]["template"]["spec"]

    (mounted,) = [v["persistentVolumeClaim"]["claimName"] for v in head["volumes"] if v["name"] == "data"]
    assert JobView({**job(), "metadata": metadata, "spec": spec}).claim == mounted


def test_age_reads_the_api_servers_times() -> None:
    assert age("2020-01-01T00:00:00Z")[0].isdigit()
