"""A head's Job that waits long before the next head is made anew where training has got further."""

from typing import Any

import pytest

from operator_kit.seen import World, child, ended, pod, ready_jobs
from rltrain_operator.plan import ChildJob, Plan, PodReport

LATER = {"path": "/data/c", "envSteps": 700, "savedAt": "2026-11-30T12:30:00Z"}
DEAD = PodReport(pods=(pod(state=ended(137, reason="Error")),))


def without_head(checkpoint: dict[str, object] = LATER) -> tuple[World, ChildJob, ChildJob]:
    """Both Jobs are from 12:00; the head was lost for the second time some time after, and 5 s have passed since."""
    world = World(runPolicy={"maxRestarts": 5})
    world.visit()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 3}, checkpoint=checkpoint)
    world.visit(*ready_jobs(), after=3600)
    head, rollouts = child("head", failed=2), child("rollouts", active=1, ready=1)
    world.visit(head, rollouts, pods=DEAD)
    world.visit(head, rollouts, after=5, pods=DEAD)
    return world, head, rollouts


def limits(plan: Plan) -> list[int]:
    return [job["spec"]["backoffLimit"] for job in plan.apply if job["metadata"]["name"] == "cartpole-head"]


def test_it_is_made_anew_with_the_failures_that_are_left() -> None:
    world, head, rollouts = without_head()
    assert world.visit(head, rollouts, after=5, pods=DEAD).delete == (), "its first wait"
    assert world.visit(head, rollouts, after=20, pods=DEAD).delete == (head,)
    assert world.status["restarts"] == 2
    plan = world.visit(rollouts)
    assert limits(plan) == [3]
    assert plan.delete == ()
    world.visit(*ready_jobs(), after=5)
    assert world.status["restarts"] == 2, "counted once"
    assert world.said("Training") == ("True", "Training")


def test_a_head_that_gets_nowhere_is_left_to_its_controllers_patience() -> None:
    for checkpoint in ({}, {**LATER, "savedAt": "2026-11-30T11:00:00Z"}):
        world, head, rollouts = without_head(checkpoint)
        assert world.visit(head, rollouts, after=600, pods=DEAD).delete == ()


@pytest.mark.parametrize("count", ["active", "terminating"])
def test_one_that_is_there_or_on_its_way_out_isnt_waited_for(count: str) -> None:
    world, _, rollouts = without_head()
    counts: dict[str, Any] = {"failed": 2, count: 1}
    assert world.visit(child("head", **counts), rollouts, after=600, pods=DEAD).delete == ()


def test_what_else_holds_it_up_is_no_patience() -> None:
    world, head, rollouts = without_head()
    refused = PodReport(warnings={head.uid: "pods is forbidden: exceeded quota: small"})
    assert world.visit(head, rollouts, after=600, pods=refused).delete == ()


def test_the_last_failure_is_told_with_all_before_it() -> None:
    world, head, rollouts = without_head()
    world.visit(head, rollouts, after=20, pods=DEAD)
    spent = child("head", failed=4, conditions=(("Failed", "BackoffLimitExceeded", ""),))
    spent.raw["spec"]["backoffLimit"] = 3
    world.visit(spent, rollouts, after=60, pods=DEAD)
    assert "failed 6 times, which uses up runPolicy.maxRestarts (5)" in world.condition("Failed")["message"]
