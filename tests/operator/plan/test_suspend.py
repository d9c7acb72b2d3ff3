"""Suspended jobs have no pods, once a checkpoint is saved, and go on as they are edited meanwhile."""

from operator_kit.manifests import UID
from operator_kit.seen import World, child, ready_jobs
from rltrain_operator.plan import Plan

CHECKPOINT = {"path": "/data/c", "envSteps": 700, "savedAt": "2026-11-30T12:00:00Z"}


def training_world() -> World:
    world = World()
    world.visit()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint=CHECKPOINT)
    world.visit(*ready_jobs(), after=5)
    assert world.status["state"] == "Training"
    return world


def test_the_head_leaves_first_and_the_rest_once_it_is_gone() -> None:
    world = training_world()
    head, rollouts = ready_jobs()
    world.edit(suspend=True)

    plan = world.visit(head, rollouts)
    assert plan.retire == (head,)
    assert [*plan.apply, *plan.create, *plan.delete] == []
    assert world.said("Training") == ("False", "Suspending")

    plan = world.visit(child("head", active=1, deleting=True), rollouts)
    assert plan.retire == (), "its driver is saving"

    plan = world.visit(rollouts)
    assert plan.retire == (rollouts,)

    plan = world.visit()
    assert world.said("Training") == ("False", "Suspended")
    assert "goes on from the checkpoint at 700 env steps" in world.condition("Training")["message"]
    assert world.said("ClusterReady") == ("False", "NoPods")
    assert world.said("Accepted") == ("True", "Accepted")
    assert world.status["state"] == "Suspended"
    assert [(event.kind, event.reason) for event in plan.events] == [("Normal", "Suspended")], "nothing is wrong"
    assert world.visit(after=3600) == Plan(), "it may rest for as long as it likes"


def test_what_is_edited_meanwhile_holds_from_the_resume_on() -> None:
    world = training_world()
    world.edit(suspend=True)
    world.visit()
    world.edit(suspend=False, rollouts={"replicas": 3})

    plan = world.visit()

    made = {each["metadata"]["name"]: each for each in plan.apply if each["kind"] == "Job"}
    assert made.keys() == {"cartpole-head", "cartpole-rollouts"}
    assert made["cartpole-rollouts"]["spec"]["completions"] == 3
    assert world.said("Training") == ("False", "Resuming")
    assert world.said("Accepted") == ("True", "Accepted")
    assert "checkpoint at 700" in world.condition("Training")["message"]
    assert plan.events == ()


def test_to_suspend_and_resume_is_no_edit_of_the_manifest() -> None:
    world = training_world()
    head, rollouts = ready_jobs()
    world.edit(suspend=True)
    world.edit(suspend=False)
    world.visit(head, rollouts)
    assert world.said("Accepted") == ("True", "Accepted")
    assert world.status["state"] == "Training"


def test_a_job_that_is_resumed_while_its_head_leaves_waits_for_that() -> None:
    world = training_world()
    world.edit(suspend=True)
    world.visit(*ready_jobs())
    world.edit(suspend=False)
    leaving, rollouts = child("head", active=1, deleting=True), ready_jobs()[1]
    plan = world.visit(leaving, rollouts)
    assert [*plan.apply, *plan.retire] == []
    assert [made["metadata"]["name"] for made in world.visit(rollouts).apply] == ["cartpole-head"]


def test_a_job_that_begins_suspended_makes_nothing_and_its_startup_deadline_begins_with_the_resume() -> None:
    world = World(suspend=True, runPolicy={"startupDeadlineSeconds": 60})
    plan = world.visit()
    assert [*plan.apply, *plan.create, *plan.retire] == []
    assert world.said("Training") == ("False", "Suspended")
    assert "It starts once it is false" in world.condition("Training")["message"]
    assert "startTime" not in world.status
    world.visit(after=3600)
    world.edit(suspend=False)
    world.visit()
    assert world.status["startTime"] == "2026-11-30T13:00:00Z"
    assert world.said("Failed")[0] != "True"


def test_suspension_stops_the_startup_deadline() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60})
    world.visit()
    world.edit(suspend=True)
    world.visit(*ready_jobs(), after=30)
    assert "startTime" not in world.status
    world.visit(after=600)
    assert world.status["state"] == "Suspended"


def test_a_finished_job_is_final_and_an_invalid_one_is_suspended_all_the_same() -> None:
    world = training_world()
    world.edit(suspend=True, seed="seven")
    head, rollouts = ready_jobs()
    assert world.visit(head, rollouts).retire == (head,)
    assert world.said("Accepted") == ("False", "InvalidManifest")
    assert "seed" in world.condition("Accepted")["message"]

    done = training_world()
    done.edit(suspend=True)
    plan = done.visit(child("head", conditions=(("Complete", "CompletionsReached", ""),)), rollouts)
    assert plan.needs_pods, "its end is told rather than that it is suspended"


def test_another_jobs_children_are_left_alone() -> None:
    world = training_world()
    world.edit(suspend=True)
    namesakes = child("head", uid="another"), child("rollouts", uid="another")
    plan = world.visit(*namesakes)
    assert plan.retire == plan.delete == ()
    assert UID not in {job.owner for job in namesakes}
    assert world.said("Training") == ("False", "Suspended")


def test_what_a_former_head_reported_says_nothing_of_the_next() -> None:
    world = training_world()
    world.edit(suspend=True)
    world.visit()
    world.edit(suspend=False)
    world.report(progress={"phase": "Training", "attempt": 1, "updatedAt": "2026-11-30T11:59:59Z"})
    world.visit(*ready_jobs())
    assert world.said("Training") == ("False", "Resuming"), "its Job was made at 12:00"
    world.report(progress={"phase": "Training", "attempt": 2, "updatedAt": "2026-11-30T12:00:05Z"})
    world.visit(*ready_jobs(), after=5)
    assert world.said("Training") == ("True", "Training")
