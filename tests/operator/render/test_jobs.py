"""The policies that let the cluster itself replace lost pods."""

from typing import Any

import pytest

from operator_kit.manifests import CONFIG, job
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import render


def job_of(made_for: RLTrainingJob, role: str) -> dict[str, Any]:
    (found,) = (
        made["spec"]
        for made in render(made_for, CONFIG)
        if made["kind"] == "Job" and made["metadata"]["labels"]["rltrain.dev/role"] == role
    )
    spec: dict[str, Any] = found
    return spec


def test_head_is_tried_again_as_often_as_the_run_policy_says_and_one_at_a_time() -> None:
    spec = job_of(job(runPolicy={"maxRestarts": 5}), "head")

    assert spec["backoffLimit"] == 5
    assert "backoffLimitPerIndex" not in spec, "its failed pods would keep a namespace from being deleted"
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 1, 1)


def test_disruption_is_looked_at_before_exit_codes_and_does_not_count() -> None:
    rules = job_of(job(), "head")["podFailurePolicy"]["rules"]

    assert [rule["action"] for rule in rules] == ["Ignore", "FailJob"]
    assert rules[0]["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert rules[1]["onExitCodes"] == {"containerName": "rltrain", "operator": "In", "values": [2, 124]}


def test_other_roles_start_again_in_place_without_end() -> None:
    spec = job_of(job("DDPPO", workers={"replicas": 4}), "workers")

    assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["backoffLimitPerIndex"] == 2**31 - 1
    assert "podFailurePolicy" not in spec
    assert (spec["completions"], spec["parallelism"]) == (4, 4)


def test_role_without_pods_has_no_job() -> None:
    jobs = [made["metadata"]["name"] for made in render(job(rollouts={"replicas": 0}), CONFIG) if made["kind"] == "Job"]

    assert jobs == ["cartpole-head"]


@pytest.mark.parametrize("learners", [1, 2])
def test_ape_x_has_jobs_for_its_shards_and_learners_that_start_again_like_its_rollouts(learners: int) -> None:
    made_for = job("Apex", rollouts={"replicas": 3}, replay={"replicas": 2}, learners={"replicas": learners})
    jobs = [made["metadata"]["name"] for made in render(made_for, CONFIG) if made["kind"] == "Job"]

    assert jobs == ["cartpole-head", "cartpole-rollouts", "cartpole-replay", "cartpole-learners"]
    for role, replicas in (("rollouts", 3), ("replay", 2), ("learners", learners)):
        spec = job_of(made_for, role)
        assert (spec["completions"], spec["parallelism"]) == (replicas, replicas)
        assert spec["backoffLimitPerIndex"] == 2**31 - 1
        assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
        assert spec["template"]["spec"]["containers"][0]["args"] == ["node"]


def test_shards_and_learner_of_the_head_need_no_jobs() -> None:
    for plan in ("Apex", "ApexClassic"):
        jobs = [made["metadata"]["name"] for made in render(job(plan), CONFIG) if made["kind"] == "Job"]
        assert jobs == ["cartpole-head", "cartpole-rollouts"]


def test_finished_jobs_are_kept_for_the_operator_to_read() -> None:
    assert "ttlSecondsAfterFinished" not in job_of(job(), "head")
