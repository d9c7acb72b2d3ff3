"""Logs have one prefix a role; where there are none, the cause is told."""

import json
from typing import Any

import pytest

from unit.cli.conftest import JOBS, PODS, ApiServer, Command, Object, condition, job


def pod(role: str, index: int, state: str, made: int = 0, uid: str = "uid-cartpole") -> Object:
    metadata = {
        "creationTimestamp": f"2026-01-01T00:00:{made:02d}Z",
        "labels": {"rltrain.dev/job-uid": uid, "rltrain.dev/role": role},
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
    }
    statuses = [{"name": "rltrain", "state": {state: {}}, "restartCount": 0}]
    return {"kind": "Pod", "metadata": metadata, "status": {"containerStatuses": statuses}}


@pytest.fixture
def talking(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """Pods that say their names."""
    answer = api.answer

    def with_logs(method: str, target: str, body: Any) -> tuple[int, Any]:
        name = target.split("/pods/")[-1].split("/")[0]
        return (200, f"I am {name}\nand so on\n") if "/log?" in target else answer(method, target, body)

    monkeypatch.setattr(api, "answer", with_logs)
    api.put(f"{JOBS}/cartpole", job(state="Training"))
    return api


def test_each_role_has_its_prefix_and_each_index_its_newest_pod(rltrain: Command, talking: ApiServer) -> None:
    talking.put(f"{PODS}/old-head", pod("head", 0, "terminated", made=1))
    talking.put(f"{PODS}/new-head", pod("head", 0, "running", made=9))
    talking.put(f"{PODS}/second", pod("rollouts", 1, "running"))
    talking.put(f"{PODS}/first", pod("rollouts", 0, "running", made=2))
    talking.put(f"{PODS}/pulling", pod("rollouts", 2, "waiting"))
    talking.put(f"{PODS}/stranger", pod("head", 0, "running", uid="of-a-namesake"))

    lines = rltrain("logs", "cartpole").out.splitlines()

    assert lines[::2] == ["head | I am new-head", "rollouts-0 | I am first", "rollouts-1 | I am second"]
    assert lines[1] == "head | and so on"
    of_one_role = rltrain("logs", "cartpole", "--role", "rollouts").out.splitlines()
    assert of_one_role == lines[2:]


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_machines_get_an_object_a_line(rltrain: Command, talking: ApiServer, follow: list[str]) -> None:
    done = condition("Succeeded", "True", "StopCriterionReached", "Stopped by env_steps.")
    talking.put(f"{JOBS}/cartpole", job(state="Succeeded", conditions=[done]))
    talking.put(f"{PODS}/second", pod("rollouts", 1, "terminated"))

    lines = rltrain("logs", "cartpole", "-o", "json", *follow).out.splitlines()

    of = {"pod": "second", "role": "rollouts", "index": 1}
    assert [json.loads(line) for line in lines] == [{**of, "line": "I am second"}, {**of, "line": "and so on"}]


def test_followed_logs_of_a_finished_job_are_all_printed_and_end_with_its_outcome(
    rltrain: Command, talking: ApiServer
) -> None:
    done = condition("Succeeded", "True", "StopCriterionReached", "Stopped by env_steps.")
    talking.put(f"{JOBS}/cartpole", job(state="Succeeded", conditions=[done]))
    talking.put(f"{PODS}/attempt-1", pod("head", 0, "terminated", made=1))
    talking.put(f"{PODS}/attempt-2", pod("head", 0, "terminated", made=9))

    followed = rltrain("logs", "cartpole", "--follow")

    assert followed.code == 0
    assert {"head | I am attempt-1", "head | I am attempt-2"} <= set(followed.out.splitlines())
    assert followed.err == "Succeeded: Stopped by env_steps.\n"


def test_cause_is_told_when_the_pods_are_gone(rltrain: Command, api: ApiServer) -> None:
    cause = condition("Failed", "True", "UnknownEnvironment", "no environment CartPool-v1")
    api.put(f"{JOBS}/cartpole", job(state="Failed", conditions=[cause]))

    done = rltrain("logs", "cartpole")

    assert (done.code, done.out) == (0, "")
    assert "no environment CartPool-v1" in done.err
    assert "is finished" in done.err


def test_pods_that_do_not_start_yet_are_told_with_the_reason(rltrain: Command, api: ApiServer) -> None:
    unschedulable = condition("ClusterReady", "False", "Unschedulable", "0/1 nodes are available")
    api.put(f"{JOBS}/cartpole", job(state="Pending", conditions=[unschedulable]))
    api.put(f"{PODS}/pulling", pod("head", 0, "waiting"))

    done = rltrain("logs", "cartpole", "--role", "head")

    assert (done.code, done.out) == (0, "")
    assert "no pod of role head of cartpole has a log" in done.err
    assert "0/1 nodes are available" in done.err
