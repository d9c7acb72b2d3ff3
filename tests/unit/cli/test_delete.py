"""Deleting says what becomes of the volume, and never takes one that isn't the job's own."""

import pytest

from unit.cli.conftest import CLAIMS, JOBS, ApiServer, Command, job

CLAIM = f"{CLAIMS}/cartpole-checkpoints"
OURS = {"app.kubernetes.io/managed-by": "rltrain", "rltrain.dev/job": "cartpole"}


@pytest.fixture
def there(api: ApiServer) -> ApiServer:
    api.put(f"{JOBS}/cartpole", job())
    api.put(CLAIM, {"metadata": {"labels": OURS}})
    return api


def test_volume_stays_and_is_named(rltrain: Command, there: ApiServer) -> None:
    done = rltrain("delete", "cartpole")

    assert done.code == 0
    assert "cartpole-checkpoints stays" in done.out
    assert "--purge" in done.out
    assert list(there.objects) == [CLAIM]


def test_purge_deletes_the_claim_too(rltrain: Command, there: ApiServer) -> None:
    assert rltrain("delete", "cartpole", "--purge", "--wait").code == 0
    assert there.objects == {}


def test_purge_works_when_the_job_is_gone_already(rltrain: Command, there: ApiServer) -> None:
    rltrain("delete", "cartpole")

    assert rltrain("delete", "cartpole", "--purge").code == 0
    assert there.objects == {}
    assert rltrain("delete", "cartpole", "--purge").code == 2


def test_claim_of_that_name_that_is_not_ours_is_left_alone(rltrain: Command, there: ApiServer) -> None:
    there.put(CLAIM, {"metadata": {"labels": {**OURS, "rltrain.dev/job": "other"}}})

    assert rltrain("delete", "cartpole", "--purge").code == 0
    assert list(there.objects) == [CLAIM]


def test_claim_that_a_user_brought_is_left_alone(rltrain: Command, api: ApiServer) -> None:
    api.put(f"{CLAIMS}/mine", {})
    body = job()
    body["spec"]["checkpoint"] = {"storage": {"claim": "mine"}}
    api.put(f"{JOBS}/cartpole", body)

    done = rltrain("delete", "cartpole", "--purge")

    assert "mine that it used stays" in done.out
    assert list(api.objects) == [f"{CLAIMS}/mine"]


def test_only_the_job_that_was_seen_is_deleted(rltrain: Command, there: ApiServer) -> None:
    rltrain("delete", "cartpole")

    body = next(body for method, path, body in there.seen if method == "DELETE")
    assert body["preconditions"] == {"uid": "uid-cartpole"}
