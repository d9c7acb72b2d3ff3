"""Edits of a job that runs: sizes and patience at once, the rest from a resume on, or by a restart of the job."""

import pytest

from operator_kit.manifests import manifest
from operator_kit.seen import World, child, ready_jobs
from rltrain_operator.plan import Change, ChildJob, Plan, PodReport, Refusal

TRAINING = {"phase": "Training", "attempt": 1, "workersWanted": 1}
CHECKPOINT = {"path": "/data/c", "envSteps": 700, "savedAt": "2026-11-30T12:00:00Z"}
EDIT = {"stop": {"envSteps": 5}, "serviceAccountName": "me", "rollouts": {"replicas": 3}}


def training_world(**spec: object) -> World:
    world = World(**spec)
    world.visit()
    world.all_applied()
    world.report(progress=TRAINING, checkpoint=CHECKPOINT)
    world.visit(*jobs_of(world), after=5)
    return world


def jobs_of(world: World) -> tuple[ChildJob, ...]:
    """Both Jobs, made for the world's present manifest and with all pods ready."""
    made_for = manifest(**world.raw["spec"])
    return child("head", active=1, ready=1, made_for=made_for), child("rollouts", active=1, ready=1, made_for=made_for)


def names(plan: Plan) -> list[str]:
    return [f"{each['kind']}/{each['metadata']['name']}" for each in (*plan.create, *plan.apply)]


def sizes(plan: Plan) -> dict[str, dict[str, int]]:
    return {change.job.role: dict(change.spec) for change in plan.change}


def test_an_edit_that_pods_cant_take_is_told_and_carried_out_not_even_in_part() -> None:
    world = training_world()
    world.edit(**EDIT)

    plan = world.visit(*ready_jobs(), after=5)

    assert (plan.apply, plan.create, plan.delete, plan.retire, plan.change) == ((), (), (), (), ())
    assert world.said("Accepted") == ("True", "ChangeNeedsRestart")
    assert "suspended and resumed" in world.condition("Accepted")["message"]
    assert world.said("ClusterReady") == ("True", "PodsReady"), "the job goes on as it was"
    assert world.status["roles"][1]["desired"] == 1

    world.edit(stop={"envSteps": 1000}, serviceAccountName=None, rollouts={"replicas": 1})
    world.visit(*ready_jobs(), after=5)
    assert world.said("Accepted") == ("True", "Accepted")


def test_with_the_strategy_for_it_the_job_restarts_from_a_checkpoint_the_head_leaving_first() -> None:
    world = training_world(updateStrategy="Restart")
    head, rollouts = jobs_of(world)
    world.edit(**EDIT)

    plan = world.visit(head, rollouts)
    assert plan.retire == (head,)
    assert names(plan) == []
    assert [job["metadata"]["name"] for job in plan.rehearse] == ["cartpole-head", "cartpole-rollouts"]
    assert plan.rehearse[1]["spec"]["completions"] == 3
    assert world.said("Training") == ("False", "Restarting")
    assert world.said("Accepted") == ("True", "Accepted")
    assert [(event.kind, event.reason) for event in plan.events] == [("Normal", "Restarting")]

    leaving = child("head", active=1, deleting=True)
    plan = world.visit(leaving, rollouts)
    assert (plan.retire, plan.rehearse, names(plan)) == ((), (), []), "its driver is saving"
    plan = world.visit(rollouts)
    assert plan.retire == (rollouts,)
    assert plan.rehearse == ()
    plan = world.visit(child("rollouts", active=1, deleting=True))
    assert (plan.retire, names(plan)) == ((), [])

    plan = world.visit()
    assert {"Job/cartpole-head", "Job/cartpole-rollouts", "ConfigMap/cartpole-manifest"} <= set(names(plan))
    assert world.said("Training") == ("False", "Resuming")
    world.visit(*jobs_of(world), after=5)
    assert world.said("Training") == ("True", "Training")


def test_nothing_leaves_for_an_edit_whose_pods_the_api_server_would_refuse() -> None:
    world = training_world(updateStrategy="Restart")
    jobs = jobs_of(world)
    world.edit(**EDIT)
    refusal = Refusal("Job", "cartpole-head", 422, "spec.template.spec.containers[0].image: Required value")

    plan = world.visit(*jobs, refusals=(refusal,))

    assert (plan.retire, plan.delete, plan.change, names(plan)) == ((), (), (), [])
    assert world.said("Accepted") == ("False", "InvalidTemplate")
    assert "Required value" in world.condition("Accepted")["message"]
    assert world.said("ClusterReady") == ("True", "PodsReady")
    assert world.said("Training") == ("True", "Training")


def test_before_training_there_is_nothing_to_lose_and_an_edit_is_carried_out_at_once() -> None:
    world = World(image="trianer:1")
    world.visit()
    head, rollouts = (child(role, active=1, made_for=manifest(image="trianer:1")) for role in ("head", "rollouts"))
    world.visit(head, rollouts, after=500)
    world.edit(image="trainer:1")

    assert world.visit(head, rollouts, after=300).retire == (head,)
    assert "startTime" not in world.status, "another time to start in"
    assert world.visit(rollouts).retire == (rollouts,)
    assert "Job/cartpole-head" in names(world.visit(after=200))
    assert world.said("Failed")[0] == "Unknown"
    assert world.said("Training")[1] == "WaitingForCluster"


def test_back_to_the_former_manifest_keeps_the_pods_that_are_still_there() -> None:
    world = training_world(updateStrategy="Restart")
    head, rollouts = jobs_of(world)
    before = world.raw["spec"]
    world.edit(**EDIT)
    world.visit(head, rollouts)
    world.edit(**{key: before.get(key) for key in EDIT})

    plan = world.visit(child("head", active=1, deleting=True, made_for=manifest(**before)), rollouts)
    assert (plan.retire, names(plan)) == ((), [])
    plan = world.visit(rollouts)
    assert plan.retire == ()
    assert names(plan) == ["Job/cartpole-head"]


@pytest.mark.parametrize(
    "policy", [{"maxRestarts": 9}, {"startupDeadlineSeconds": 60}, {"cleanUp": {"onFailure": "All"}}]
)
def test_the_run_policy_needs_no_other_pods(policy: dict[str, object]) -> None:
    world = training_world()
    world.edit(runPolicy=policy)
    plan = world.visit(*ready_jobs(), after=5)
    assert world.said("Accepted") == ("True", "Accepted")
    assert sizes(plan) == ({"head": {"backoffLimit": 9}} if "maxRestarts" in policy else {})
    assert names(plan) == ["ConfigMap/cartpole-manifest"], "what the next head reads"


def test_more_rollouts_come_at_once_and_the_driver_is_told() -> None:
    world = training_world()
    world.edit(rollouts={"replicas": 3})
    head, rollouts = ready_jobs()

    plan = world.visit(head, rollouts, after=5)

    assert plan.change == (Change(rollouts, {"completions": 3, "parallelism": 3}),)
    assert names(plan) == ["ConfigMap/cartpole-manifest"]
    assert '"replicas": 3' in next(each for each in plan.apply)["data"]["job.yaml"]
    assert world.said("Accepted") == ("True", "Accepted")


def test_fewer_leave_once_the_driver_has_let_go_of_them() -> None:
    world = training_world(rollouts={"replicas": 3})
    head, rollouts = child("head", active=1, ready=1), child("rollouts", desired=3, active=3, ready=3)
    world.report(progress={**TRAINING, "workersWanted": 3})
    world.edit(rollouts={"replicas": 2})
    assert sizes(world.visit(head, rollouts, after=5)) == {}
    world.report(progress={**TRAINING, "workersWanted": 2})
    assert sizes(world.visit(head, rollouts, after=30)) == {"rollouts": {"completions": 2, "parallelism": 2}}
    assert sizes(world.visit(head, child("rollouts", desired=2, active=2, ready=2))) == {}


def test_nobody_misses_pods_while_nothing_trains() -> None:
    world = training_world(rollouts={"replicas": 3})
    world.report(progress={**TRAINING, "phase": "Starting", "workersWanted": 3})
    world.edit(rollouts={"replicas": 2})
    plan = world.visit(child("head", active=1), child("rollouts", desired=3, active=3, ready=3))
    assert sizes(plan) == {"rollouts": {"completions": 2, "parallelism": 2}}


def test_ranks_are_resized_too_and_from_or_to_none_is_a_restart() -> None:
    world = World(plan="DDPPO", workers={"replicas": 2})
    made_for = manifest(**world.raw["spec"])
    ranks = child("workers", desired=2, active=2, ready=2, made_for=made_for)
    head = child("head", active=1, ready=1, made_for=made_for)
    world.visit()
    world.report(progress={**TRAINING, "workersWanted": 2})
    world.edit(workers={"replicas": 4, "minReplicas": 2})
    assert sizes(world.visit(head, ranks)) == {"workers": {"completions": 4, "parallelism": 4}}

    alone = training_world()
    alone.edit(rollouts={"replicas": 0})
    assert alone.visit(*ready_jobs()).change == ()
    assert alone.said("Accepted") == ("True", "ChangeNeedsRestart"), "who samples is settled when the driver starts"


def test_with_autoscale_the_drivers_proposal_is_followed_within_the_bounds() -> None:
    world = training_world(rollouts={"replicas": 1, "maxReplicas": 3, "autoscale": True})
    head, rollouts = ready_jobs()
    assert sizes(world.visit(head, rollouts, after=5)) == {}
    world.report(progress={**TRAINING, "rolloutsProposed": 2})
    plan = world.visit(head, rollouts, after=60)
    assert sizes(plan) == {"rollouts": {"completions": 2, "parallelism": 2}}
    assert '"replicas": 2' in plan.apply[0]["data"]["job.yaml"], "which is how the driver learns of it"

    two = child("rollouts", desired=2, active=2, ready=2)
    world.report(progress=TRAINING)
    assert sizes(world.visit(head, two, after=5)) == {}, "the next head begins with as many as there are"
    world.report(progress={**TRAINING, "rolloutsProposed": 9})
    assert sizes(world.visit(head, two, after=60))["rollouts"]["completions"] == 3
    world.edit(rollouts={"replicas": 1, "maxReplicas": 3})
    world.report(progress={**TRAINING, "rolloutsProposed": 2})
    assert sizes(world.visit(head, two)) == {"rollouts": {"completions": 1, "parallelism": 1}}, "no longer asked for"


def test_another_size_is_told_once_and_a_first_one_never() -> None:
    assert said_of_sizes(World().visit(*ready_jobs())) == []
    world = training_world(rollouts={"replicas": 1, "maxReplicas": 3, "autoscale": True})
    head, one, two = *ready_jobs(), child("rollouts", desired=2, active=2, ready=2)
    assert said_of_sizes(world.visit(head, one, after=5)) == []
    world.edit(rollouts={"replicas": 1, "maxReplicas": 3, "autoscale": True})
    assert said_of_sizes(world.visit(head, two)) == ["rollouts: from 1 to 2 pods, as suits the learner."]
    assert said_of_sizes(world.visit(head, two, after=5)) == []
    world.edit(rollouts={"replicas": 1})
    assert said_of_sizes(world.visit(head, one)) == ["rollouts: from 2 to 1 pods."]


def said_of_sizes(plan: Plan) -> list[str]:
    return [event.message for event in plan.events if event.reason == "Resized"]


def test_what_scales_it_reads_how_many_there_are() -> None:
    world = training_world()
    world.visit(child("head", active=1, ready=1), child("rollouts", desired=3, active=2, ready=1), after=5)
    assert world.status["rollouts"] == 2
    assert world.status["selector"] == f"rltrain.dev/job-uid={world.raw['metadata']['uid']},rltrain.dev/role=rollouts"
    world.edit(suspend=True)
    world.visit()
    assert world.status["rollouts"] == 0
    assert "selector" in world.status
    ranks = World(plan="DDPPO", workers={"replicas": 2})
    ranks.visit(child("head", active=1), child("workers", desired=2, active=2))
    assert "selector" not in ranks.status


def test_a_job_that_restarts_long_after_its_startup_deadline_is_not_held_to_it_again() -> None:
    world = training_world(updateStrategy="Restart", runPolicy={"startupDeadlineSeconds": 60})
    head, rollouts = jobs_of(world)
    world.edit(**EDIT)
    for jobs in ((head, rollouts), (rollouts,), ()):
        world.visit(*jobs, after=100)
    # A driver that has saved nothing yet, and a status that has lost what the last one said.
    world.report(progress={"phase": "Starting", "attempt": 2}, checkpoint=None)

    world.visit(*jobs_of(world), after=100, pods=PodReport())

    assert world.said("Training") == ("False", "Resuming")
    assert world.said("Failed")[0] == "Unknown"
