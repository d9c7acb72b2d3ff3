"""A job in Kueue's queue has pods while Kueue admits it, and no longer."""

from dataclasses import replace

from operator_kit.kueue import (
    ADMISSION,
    ADMITTED,
    FLAVOR,
    PREEMPTED,
    QUEUE,
    SERVED,
    admitted,
    queued_world,
    see,
    workload,
)
from operator_kit.manifests import manifest
from operator_kit.seen import World, child, ready_jobs
from rltrain_operator.plan import ChildJob, Plan, PodReport, Refusal
from rltrain_operator.render import Served

CHECKPOINT = {"path": "/data/c", "envSteps": 700, "savedAt": "2026-11-30T12:00:00Z"}
MADE_FOR = manifest(scheduling=QUEUE)


def jobs() -> tuple[ChildJob, ChildJob]:
    return child("head", active=1, ready=1, made_for=MADE_FOR), child("rollouts", active=1, ready=1, made_for=MADE_FOR)


def training_world() -> World:
    world = queued_world()
    see(world, admitted(), fast=FLAVOR)
    world.visit()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint=CHECKPOINT)
    world.visit(*jobs(), after=5)
    assert world.status["state"] == "Training"
    return world


def test_a_workload_is_made_for_the_whole_job_and_nothing_else_until_it_is_admitted() -> None:
    world = queued_world(runPolicy={"startupDeadlineSeconds": 60})
    plan = world.visit()
    (made,) = plan.create
    assert made["kind"] == "Workload"
    assert [(each["name"], each["count"]) for each in made["spec"]["podSets"]] == [("head", 1), ("rollouts", 1)]
    assert plan.apply == ()
    assert [each["metadata"]["name"] for each in plan.rehearse] == ["cartpole-head", "cartpole-rollouts"]
    see(world, workload({"QuotaReserved": ("False", "Pending", "insufficient unused quota for cpu")}))
    plan = world.visit(after=3600)
    assert [*plan.apply, *plan.create] == []
    assert world.said("ClusterReady") == ("False", "Queued")
    assert world.condition("ClusterReady")["message"] == "Waits in queue team: insufficient unused quota for cpu"
    assert world.said("Training") == ("False", "Queued")
    assert world.status["state"] == "Pending"
    assert "startTime" not in world.status, "the startup deadline doesn't run"
    assert [(event.kind, event.reason) for event in plan.events] == []
    assert world.visit(after=3600) == Plan(), "it may wait for as long as it takes, for nothing"


def test_admitted_its_pods_go_where_the_quota_is() -> None:
    world = queued_world()
    see(world, admitted())
    assert world.visit().needs == (("ResourceFlavor", "fast"),)
    see(world, admitted(), fast=FLAVOR)
    plan = world.visit()
    made = [each for each in plan.apply if each["kind"] == "Job"]
    assert [each["metadata"]["name"] for each in made] == ["cartpole-head", "cartpole-rollouts"]
    for each in made:
        spec = each["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"disk": "ssd"}
        assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists"}], "once, though it has two resources"
    assert world.status["startTime"]


def test_quota_that_waits_for_checks_or_was_taken_back_isnt_an_admission() -> None:
    world = queued_world()
    checks = {"QuotaReserved": ADMITTED["QuotaReserved"], "Admitted": ("False", "Checks", "not all checks ready")}
    see(world, workload(checks, admission=ADMISSION), fast=FLAVOR)
    assert world.visit().apply == ()
    assert world.condition("ClusterReady")["message"].endswith("not all checks ready")
    see(world, admitted(Evicted=PREEMPTED), fast=FLAVOR)
    assert world.visit().apply == ()


def test_preempted_the_head_leaves_first_then_the_rest_then_the_quota_is_given_back() -> None:
    world = training_world()
    head, rollouts = jobs()
    see(world, admitted(Evicted=PREEMPTED))
    plan = world.visit(head, rollouts)
    assert plan.retire == (head,)
    assert plan.tell is None, "the quota is held while there are pods"
    assert world.said("ClusterReady") == ("False", "Preempted")
    assert "due to prioritization" in world.condition("ClusterReady")["message"]
    assert world.said("Training") == ("False", "Preempted")
    assert world.status["state"] == "Pending"
    assert ("Warning", "Preempted") in [(event.kind, event.reason) for event in plan.events]
    leaving = child("head", active=1, deleting=True, made_for=MADE_FOR)
    assert world.visit(leaving, rollouts).retire == ()
    assert world.visit(rollouts).retire == (rollouts,)

    plan = world.visit()
    assert plan.tell is not None
    assert plan.tell.status["admission"] is None
    told = {each["type"]: (each["status"], each["reason"]) for each in plan.tell.status["conditions"]}
    assert told == {
        "QuotaReserved": ("False", "Pending"),
        "Admitted": ("False", "NoReservation"),
        "Evicted": ("True", "Preempted"),
        "Requeued": ("True", "Preempted"),
        "PodsReady": ("False", "WaitForStart"),
    }
    assert world.said("ClusterReady") == ("False", "Queued")
    assert "checkpoint at 700 env steps" in world.condition("Training")["message"]
    assert world.said("Failed")[0] == "Unknown", "it is no failure"

    see(world, admitted(Evicted=("False", "QuotaReserved", "")), fast=FLAVOR)
    assert len([each for each in world.visit().apply if each["kind"] == "Job"]) == 2
    assert world.said("Training") == ("False", "Resuming")


def test_other_evictions_keep_the_time_after_which_kueue_tries_again() -> None:
    world = training_world()
    see(world, admitted(Evicted=("True", "PodsReadyTimeout", "Exceeded the PodsReady timeout")))
    world.visit(*jobs())
    assert world.said("ClusterReady") == ("False", "Evicted")
    told = world.visit().tell
    assert told is not None
    assert {each["type"]: each["status"] for each in told.status["conditions"]}["Requeued"] == "False"


def test_a_workload_that_somebody_deletes_takes_the_pods_with_it() -> None:
    world = training_world()
    see(world, None)
    head, rollouts = jobs()
    assert world.visit(head, rollouts).retire == (head,)
    assert world.said("ClusterReady") == ("False", "Evicted")
    assert [made["kind"] for made in world.visit().create] == ["Workload"]


def test_pods_stay_while_kueue_is_away() -> None:
    world = training_world()
    world.seen = replace(world.seen, served=Served(), workload=None)
    assert world.visit(*jobs()).retire == ()


def test_without_kueue_it_says_so_and_looks_again() -> None:
    world = queued_world()
    world.seen = replace(world.seen, served=Served())
    plan = world.visit()
    assert plan.look_around
    assert plan.again_in is not None
    assert [*plan.apply, *plan.create] == []
    assert world.said("ClusterReady") == ("False", "NoQueueing")
    assert "install it" in world.condition("ClusterReady")["message"]
    world.seen = replace(world.seen, served=SERVED)
    assert [made["kind"] for made in world.visit().create] == ["Workload"]


def test_suspended_it_gives_its_quota_back_once_its_pods_are_gone() -> None:
    world = training_world()
    world.edit(suspend=True)
    assert world.visit(*jobs()).release is None
    assert world.visit(jobs()[1]).release is None
    assert world.visit().release == world.seen.workload
    see(world, None)
    assert world.visit().release is None


def test_an_edit_takes_the_place_of_the_former_manifest_in_the_queue() -> None:
    world = queued_world()
    see(world, workload({"QuotaReserved": ("False", "Pending", "no")}))
    world.visit()
    world.edit(rollouts={"replicas": 3})
    plan = world.visit()
    assert plan.release == world.seen.workload
    assert plan.create == ()
    see(world, None)
    assert world.visit().create[0]["spec"]["podSets"][1]["count"] == 3


def test_replicas_of_a_running_job_in_a_queue_need_a_restart() -> None:
    world = training_world()
    world.edit(rollouts={"replicas": 3})
    plan = world.visit(*jobs())
    assert plan.change == ()
    assert plan.release is None
    assert world.said("Accepted") == ("True", "ChangeNeedsRestart")
    world.edit(updateStrategy="Restart")
    assert world.visit(*jobs()).retire == (jobs()[0],)
    assert world.visit().release == world.seen.workload


def test_a_job_that_leaves_its_queue_by_an_edit_holds_no_quota() -> None:
    world = queued_world()
    see(world, workload())
    world.visit()
    world.edit(scheduling={})
    assert world.visit().release == world.seen.workload


def test_the_priority_class_gives_the_place_in_the_queue() -> None:
    world = queued_world()
    world.edit(scheduling={**QUEUE, "priorityClassName": "urgent"})
    assert world.visit().needs == (("PriorityClass", "urgent"),)
    world.seen = replace(world.seen, found={("PriorityClass", "urgent"): None})
    assert world.visit().create == ()
    assert world.said("ClusterReady") == ("False", "NoPriorityClass")
    world.seen = replace(world.seen, found={("PriorityClass", "urgent"): {"value": 100}})
    spec = world.visit().create[0]["spec"]
    assert spec["priority"] == 100
    assert spec["priorityClassRef"] == {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "urgent"}


def test_what_the_api_server_refuses_is_said_before_the_job_waits() -> None:
    world = queued_world()
    world.visit(refusals=(Refusal("Job", "cartpole-head", 422, "spec.nodeSelectorr: unknown"),))
    assert world.said("Accepted") == ("False", "InvalidTemplate")


def test_another_jobs_workload_is_waited_for() -> None:
    world = queued_world()
    see(world, workload(uid="another"))
    plan = world.visit()
    assert plan.create == ()
    assert plan.release is None
    assert plan.again_in is not None
    assert world.said("ClusterReady") == ("False", "NamesakeTerminating")


def test_the_workload_says_whether_the_pods_are_ready_and_is_told_once() -> None:
    world = training_world()
    told = world.visit(*jobs(), after=10).tell
    assert told is not None
    ready = next(each for each in told.status["conditions"] if each["type"] == "PodsReady")
    assert (ready["status"], ready["reason"]) == ("True", "Started")
    see(world, admitted(PodsReady=("True", "Started", "All pods are ready.")))
    assert world.visit(*jobs()).tell is None
    lost = child("rollouts", active=1, made_for=MADE_FOR)
    told = world.visit(jobs()[0], lost).tell
    assert told is not None
    assert told.status["conditions"][-1]["reason"] == "WaitForRecovery"


def test_a_finished_jobs_workload_is_finished() -> None:
    world = training_world()
    done = child("head", conditions=(("Complete", "CompletionsReached", ""),), made_for=MADE_FOR)
    told = world.visit(done, jobs()[1], pods=PodReport()).tell
    assert told is not None
    assert told.status["conditions"][-1]["type"] == "Finished"
    assert told.status["conditions"][-1]["reason"] == "Succeeded"
    assert "admission" not in told.status
    assert world.visit(done).tell is not None, "until it is written"
    see(world, admitted(Finished=("True", "Succeeded", "")))
    assert world.visit(done).tell is None


def test_a_job_without_a_queue_has_no_workload() -> None:
    world = World()
    world.seen = replace(world.seen, served=SERVED)
    plan = world.visit()
    assert "Workload" not in {made["kind"] for made in [*plan.create, *plan.apply]}
    assert {made["kind"] for made in plan.apply} >= {"Job"}
    assert world.visit(*ready_jobs()).retire == ()


def test_volcano_that_isnt_there_is_missed() -> None:
    world = World(scheduling={"gang": "Volcano"})
    assert world.visit().look_around
    assert world.said("ClusterReady") == ("False", "NoGangScheduling")
    world.seen = replace(world.seen, served=Served(volcano=True))
    assert "PodGroup" in {made["kind"] for made in world.visit().apply}
