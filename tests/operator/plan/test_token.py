"""Pods that have another token than the Secret can't be joined by others: all of them make way."""

from dataclasses import replace
from datetime import timedelta

import pytest

from operator_kit.seen import START, World, child, pod, ready_jobs
from rltrain_operator.plan import Plan, PodReport


def training_world(token_after: float) -> World:
    """Its Jobs were made at the start, its Secret some seconds after."""
    world = World()
    world.visit()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint={"envSteps": 700})
    world.seen = replace(world.seen, token_since=START + timedelta(seconds=token_after))
    return world


def made(plan: Plan) -> set[str]:
    return {each["kind"] for each in (*plan.create, *plan.apply)}


def test_after_the_secret_was_made_anew_the_pods_leave_the_heads_first_and_others_follow() -> None:
    world = training_world(token_after=100)
    head, rollouts = ready_jobs()

    assert world.visit(head, rollouts, after=120).retire == (head,)
    assert world.said("Training") == ("False", "Restarting")
    assert "token" in world.condition("Training")["message"]
    assert world.visit(child("head", active=1, deleting=True), rollouts).retire == ()
    assert world.visit(rollouts).retire == (rollouts,)
    assert made(world.visit()) == {"Job"}
    assert world.said("Training") == ("False", "Resuming")


def test_a_secret_that_is_older_than_the_pods_is_theirs() -> None:
    for before in (0, -3600):
        world = training_world(token_after=before)
        assert world.visit(*ready_jobs(), after=5).retire == ()
        assert world.said("Training") == ("True", "Training")


@pytest.mark.parametrize(("waiting", "is_made"), [("CreateContainerConfigError", True), ("ContainerCreating", False)])
def test_where_a_pod_lacks_something_the_secret_is_made_again_if_it_is_gone(waiting: str, is_made: bool) -> None:
    world = training_world(token_after=0)
    jobs = child("head", active=1, ready=1), child("rollouts", active=1)
    lacking = pod("rollouts", state={"waiting": {"reason": waiting, "message": "secret not found"}})
    world.visit(*jobs, after=5)

    plan = world.visit(*jobs, after=5, pods=PodReport(pods=(lacking,)))

    assert made(plan) == ({"Secret", "PersistentVolumeClaim"} if is_made else set())
