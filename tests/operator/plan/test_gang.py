"""A gang that Kubernetes itself keeps: made with the pods, and as large as they are while Kubernetes fixes that."""

from dataclasses import replace
from typing import Any

import pytest

from operator_kit.manifests import manifest
from operator_kit.seen import World, child
from rltrain_operator.plan import ChildJob, Plan
from rltrain_operator.render import Served

ALPHA, BETA = Served(pod_groups="v1alpha2"), Served(pod_groups="v1beta1")
GANG = {"gang": "Kubernetes"}


def training_world(served: Served, **scheduling: str) -> World:
    """A job with two rollouts, one of which training needs."""
    world = World(scheduling=scheduling, rollouts={"replicas": 2, "minReplicas": 1})
    world.seen = replace(world.seen, served=served)
    world.visit()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*jobs(world), after=5)
    assert world.status["state"] == "Training"
    return world


def jobs(world: World) -> tuple[ChildJob, ChildJob]:
    made_for = manifest(**world.raw["spec"])
    head = child("head", active=1, ready=1, made_for=made_for)
    return head, child("rollouts", desired=2, active=2, ready=2, made_for=made_for)


def groups(plan: Plan) -> list[dict[str, Any]]:
    return [made["spec"]["schedulingPolicy"]["gang"] for made in plan.apply if made["kind"] == "PodGroup"]


def test_gangs_that_kubernetes_doesnt_serve_are_missed() -> None:
    world = World(scheduling=GANG)
    assert world.visit().look_around
    assert world.said("ClusterReady") == ("False", "NoGangScheduling")
    assert "v1beta1 or v1alpha2: turn them on" in world.condition("ClusterReady")["message"]
    world.seen = replace(world.seen, served=ALPHA)
    kinds = [made["kind"] for made in world.visit().apply]
    assert kinds.index("PodGroup") < kinds.index("Job"), "or the pods would wait for it"


@pytest.mark.parametrize("edit", [{"replicas": 3, "minReplicas": 1}, {"replicas": 2, "minReplicas": 2}])
def test_replicas_stay_as_they_are_in_a_gang_of_1_36(edit: dict[str, int]) -> None:
    world = training_world(ALPHA, **GANG)
    there = jobs(world)
    world.edit(rollouts=edit)
    plan = world.visit(*there, after=5)
    assert (plan.change, plan.apply, plan.retire) == ((), (), ())
    assert world.said("Accepted") == ("True", "ChangeNeedsRestart")

    world.edit(updateStrategy="Restart")
    assert world.visit(*there).retire == (there[0],), "the head first, for its checkpoint"
    least = 1 + edit["minReplicas"]
    made = world.visit()
    assert [group["minCount"] for group in groups(made)] == ([least] if least != 2 else [])
    sizes = [made["spec"]["completions"] for made in made.apply if made["kind"] == "Job"]
    assert sizes == [1, edit["replicas"]]


@pytest.mark.parametrize("scheduling", [GANG, {}])
def test_replicas_and_the_gangs_least_are_free_in_1_37(scheduling: dict[str, str]) -> None:
    world = training_world(BETA, **scheduling)
    there = jobs(world)
    world.edit(rollouts={"replicas": 3, "minReplicas": 2})
    plan = world.visit(*there, after=5)
    assert [dict(change.spec) for change in plan.change] == [{"completions": 3, "parallelism": 3}]
    assert groups(plan) == [{"minCount": 3}]
    assert world.said("Accepted") == ("True", "Accepted")


def test_a_job_that_asks_for_no_gang_is_free_where_1_36_has_them() -> None:
    world = training_world(ALPHA)
    there = jobs(world)
    world.edit(rollouts={"replicas": 3, "minReplicas": 1})
    plan = world.visit(*there, after=5)
    assert [dict(change.spec) for change in plan.change] == [{"completions": 3, "parallelism": 3}]
    assert world.said("Accepted") == ("True", "Accepted")


def test_a_gang_whose_api_is_gone_is_let_be() -> None:
    world = training_world(ALPHA, **GANG)
    there = jobs(world)
    world.seen = replace(world.seen, served=Served())
    plan = world.visit(*there, after=5)
    assert (plan.apply, plan.retire, plan.change) == ((), (), ())


def made_anew(served: Served, gang: str | None) -> dict[str, Any]:
    """The pods' spec of a head's Job that is made anew while the others stay."""
    world = World()
    world.seen = replace(world.seen, served=served)
    world.visit()
    plan = world.visit(child("rollouts", active=1, ready=1, gang=gang))
    (head,) = [made for made in plan.apply if made["kind"] == "Job"]
    assert head["metadata"]["name"] == "cartpole-head"
    spec: dict[str, Any] = head["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(("served", "sign"), [(Served(volcano=True), "schedulerName"), (BETA, "schedulingGroup")])
def test_a_scheduler_that_came_later_isnt_for_pods_whose_others_are_in_no_gang(served: Served, sign: str) -> None:
    assert sign not in made_anew(served, "None")
    assert sign in made_anew(served, "Volcano" if served.volcano else "Kubernetes")
    assert sign in made_anew(served, None)


def test_a_gang_stays_with_the_scheduler_that_keeps_it() -> None:
    spec = made_anew(Served(volcano=True, pod_groups="v1beta1"), "Kubernetes")
    assert "schedulingGroup" in spec
    assert "schedulerName" not in spec
