"""`rltrain status` tells the story of a job: a table, the details, or JSON."""

import json

import pytest

from unit.cli.conftest import JOBS, ApiServer, Command, condition, job

PROGRESS = {
    "phase": "Training",
    "attempt": 2,
    "resumedFromSteps": 900,
    "envSteps": 1200,
    "episodeReturnMean": 21.5,
    "stepsPerSecond": 40.0,
    "workersHealthy": 1,
    "workersWanted": 2,
    "etaSeconds": 75.0,
    "updatedAt": "2026-01-01T00:01:00Z",
}


def test_jobs_are_a_table_in_the_order_of_their_names(rltrain: Command, api: ApiServer) -> None:
    roles = [{"name": "head", "desired": 1, "ready": 1}, {"name": "rollouts", "desired": 3, "ready": 2}]
    api.put(f"{JOBS}/b", job(state="Training", progress=PROGRESS, roles=roles))
    api.put(f"{JOBS}/a", job())

    header, first, second = rltrain("status").out.splitlines()

    assert header.split() == ["NAME", "PLAN", "STATE", "STEPS", "RETURN", "READY", "AGE"]
    assert first.split()[:3] == ["a", "DQN", "Pending"]
    assert second.split()[:6] == ["b", "DQN", "Training", "1200", "21.5", "3/4"]


def test_no_jobs_are_said_to_be_none_and_json_stays_json(rltrain: Command, api: ApiServer) -> None:
    assert "no jobs in namespace default" in rltrain("status").err
    assert json.loads(rltrain("status", "-o", "json").out) == []


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ([], "operator hasn't looked at it yet"),
        ([condition("Accepted", "False", "InvalidManifest", "buffer_size is too small")], "buffer_size is too small"),
        (
            [
                condition("Accepted", "True", "Accepted", "fine"),
                condition("ClusterReady", "False", "Unschedulable", "0/1 nodes are available"),
                condition("Training", "False", "WaitingForCluster", "waiting"),
            ],
            "0/1 nodes are available",
        ),
        (
            [
                condition("ClusterReady", "False", "Finished", "The job is finished."),
                condition("Failed", "True", "EnvironmentFailed", "step() returned NaN"),
            ],
            "step() returned NaN",
        ),
    ],
)
def test_details_say_first_why_the_job_is_where_it_is(
    rltrain: Command, api: ApiServer, conditions: list[dict[str, object]], why: str
) -> None:
    api.put(f"{JOBS}/cartpole", job(conditions=conditions))

    assert why in rltrain("status", "cartpole").out.splitlines()[1]


def test_details_tell_progress_attempt_and_checkpoint(rltrain: Command, api: ApiServer) -> None:
    checkpoint = {"path": "/data/u/checkpoints/000000000900-0001", "envSteps": 900, "savedAt": "2026-01-01T00:00:30Z"}
    api.put(f"{JOBS}/cartpole", job(state="Training", progress=PROGRESS, checkpoint=checkpoint))

    told = rltrain("status", "cartpole").out

    for words in ("1200 steps", "return 21.5", "40 steps/s", "1m15s left", "2, resumed at 900 steps", "1/2 healthy"):
        assert words in told
    assert "/data/u/checkpoints/000000000900-0001 at 900 steps" in told
    assert "cartpole-checkpoints" in told


def test_machines_get_snake_case_and_null_for_what_is_not_a_number(rltrain: Command, api: ApiServer) -> None:
    api.put(f"{JOBS}/cartpole", job(state="Training", progress={**PROGRESS, "episodeReturnMean": None}))

    told = json.loads(rltrain("status", "cartpole", "-o", "json").out)

    assert told["progress"]["env_steps"] == 1200
    assert told["progress"]["episode_return_mean"] is None
    assert told["state"] == "Training"


def test_machines_that_watch_get_an_object_a_change_and_the_jobs_result(rltrain: Command, api: ApiServer) -> None:
    ended = condition("Failed", "True", "DeadlineExceeded", "Late.")
    nan = {**PROGRESS, "episodeReturnMean": float("nan")}
    api.put(f"{JOBS}/cartpole", job(state="Failed", conditions=[ended], progress=nan))

    done = rltrain("status", "cartpole", "--watch", "-o", "json")

    assert done.code == 124
    (line,) = done.out.splitlines()
    assert json.loads(line)["message"] == "Late."
    assert json.loads(line)["progress"]["episode_return_mean"] is None


def test_status_of_a_newer_release_is_still_read(rltrain: Command, api: ApiServer) -> None:
    api.put(f"{JOBS}/cartpole", job(state="Training", progress={**PROGRESS, "novel": 1}, novelty={"a": 1}))

    assert rltrain("status", "cartpole").code == 0


@pytest.mark.parametrize("name", ["", "..", "default/cartpole", "A", "x y", "-", "a/"])
def test_name_that_no_object_can_have_is_refused_before_anything_is_asked(
    rltrain: Command, api: ApiServer, name: str
) -> None:
    api.put(f"{JOBS}/cartpole", job())
    for args in (["status"], ["logs"], ["fetch"], ["delete"], ["status", "cartpole", "-n"]):
        done = rltrain(*args, "--", name) if "-n" not in args else rltrain(*args, name)
        assert done.code == 2, args
        assert "nothing in Kubernetes is called" in done.err or "needs a value" in done.err
    assert api.seen == []


def test_one_job_of_all_namespaces_is_refused(rltrain: Command, api: ApiServer) -> None:
    done = rltrain("status", "cartpole", "--all-namespaces")

    assert done.code == 2
    assert "leave cartpole out" in done.err


def test_watching_needs_a_job(rltrain: Command, api: ApiServer) -> None:
    done = rltrain("status", "--watch")

    assert done.code == 2
    assert "name it" in done.err
