"""From creation to the end: what is made, in which order, and what is said meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from operator_kit.manifests import UID
from operator_kit.seen import World, child, ended, pod, ready_jobs
from rltrain_operator.plan import Plan, PodReport, Refusal

COMPLETE = (("Complete", "CompletionsReached", ""),)


def names(objects: tuple[dict[str, Any], ...]) -> list[str]:
    return [f"{made['kind']}/{made['metadata']['name']}" for made in objects]


def test_first_visit_makes_everything_and_sets_every_condition() -> None:
    world = World()

    plan = world.visit()

    assert names(plan.create) == ["Secret/cartpole-token", "PersistentVolumeClaim/cartpole-checkpoints"]
    assert names(plan.apply)[-2:] == ["Job/cartpole-head", "Job/cartpole-rollouts"]
    assert [condition["type"] for condition in world.status["conditions"]] == [
        *("Accepted", "ClusterReady", "Training", "Succeeded", "Failed")
    ]
    assert world.said("Accepted") == ("True", "Accepted")
    assert world.said("ClusterReady") == ("False", "Creating")
    assert world.status["state"] == "Pending"
    assert world.status["startTime"] == "2026-11-30T12:00:00Z"
    assert plan.again_in is not None


def test_steady_state_writes_nothing_and_asks_for_nothing() -> None:
    world = World()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*ready_jobs())

    plan = world.visit(*ready_jobs(), after=600)

    assert plan == Plan()


def test_what_differs_from_its_rendering_is_applied_again_and_what_is_made_once_is_not() -> None:
    world = World()
    world.all_applied()
    applied = dict(world.seen.applied)
    applied["Service", "cartpole"] = "of another release"
    applied["Secret", "cartpole-token"] = "of another release"
    del applied["NetworkPolicy", "cartpole"]
    world.seen = type(world.seen)(now=world.seen.now, applied=applied)

    plan = world.visit(*ready_jobs())

    assert names(plan.apply) == ["NetworkPolicy/cartpole", "Service/cartpole"]
    assert plan.create == ()


def test_ape_x_is_ready_once_its_shards_and_learner_are_and_each_role_is_counted() -> None:
    roles = {"replay": {"replicas": 2}, "learners": {"replicas": 1}}
    world = World(plan="Apex", **roles)
    world.visit()
    jobs = [
        child(role, desired=desired, active=desired, ready=desired, made_for=world.raw)
        for role, desired in (("head", 1), ("rollouts", 1), ("replay", 2), ("learners", 1))
    ]
    late = child("replay", desired=2, active=2, ready=1, made_for=world.raw)

    world.visit(*jobs[:2], late, jobs[3], after=1)
    assert world.said("ClusterReady") == ("False", "PodsStarting")
    assert "replay 1/2 ready" in world.condition("ClusterReady")["message"]

    world.visit(*jobs, after=2)
    assert world.said("ClusterReady") == ("True", "PodsReady")
    assert world.status["roles"] == [
        {"name": "head", "desired": 1, "ready": 1, "failed": 0},
        {"name": "rollouts", "desired": 1, "ready": 1, "failed": 0},
        {"name": "replay", "desired": 2, "ready": 2, "failed": 0},
        {"name": "learners", "desired": 1, "ready": 1, "failed": 0},
    ]


def test_lost_job_is_made_again() -> None:
    world = World()
    world.all_applied()

    assert names(world.visit(child("head", active=1, ready=1)).apply) == ["Job/cartpole-rollouts"]


def test_cluster_becomes_ready_and_training_begins_when_the_driver_says_so() -> None:
    world = World()
    world.visit()

    world.visit(child("head", active=1), child("rollouts", active=1), after=1)
    assert world.said("ClusterReady") == ("False", "PodsStarting")
    assert "head 0/1 ready" in world.condition("ClusterReady")["message"]

    world.visit(*ready_jobs(), after=2)
    assert world.said("ClusterReady") == ("True", "PodsReady")
    assert world.said("Training") == ("False", "Starting")
    assert world.status["state"] == "Starting"
    assert world.status["roles"] == [
        {"name": "head", "desired": 1, "ready": 1, "failed": 0},
        {"name": "rollouts", "desired": 1, "ready": 1, "failed": 0},
    ]

    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*ready_jobs(), after=3)
    assert world.said("Training") == ("True", "Training")
    assert world.status["state"] == "Training"


def test_transition_time_moves_only_with_the_status() -> None:
    world = World()
    world.visit()
    first = world.condition("ClusterReady")["lastTransitionTime"]

    world.visit(child("head", active=1), child("rollouts", active=1), after=2)
    assert world.condition("ClusterReady")["reason"] == "PodsStarting"
    assert world.condition("ClusterReady")["lastTransitionTime"] == first

    world.visit(*ready_jobs(), after=2)
    assert world.condition("ClusterReady")["lastTransitionTime"] > first


def test_lost_head_means_recovering_until_the_next_one_trains() -> None:
    world = World()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint={"envSteps": 5000})
    world.visit(*ready_jobs())

    world.visit(child("head", active=1, failed=1), child("rollouts", active=1, ready=1), after=5)
    assert world.said("Training") == ("False", "Recovering")
    assert "5000" in world.condition("Training")["message"]
    assert world.status["state"] == "Recovering"

    world.report(progress={"phase": "Starting", "attempt": 2})
    world.visit(*ready_jobs(), after=5)
    assert world.status["state"] == "Recovering"

    world.report(progress={"phase": "Training", "attempt": 2})
    world.visit(*ready_jobs(), after=5)
    assert world.status["state"] == "Training"


def test_head_that_ends_because_the_driver_is_done_is_not_said_to_be_lost() -> None:
    world = World()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint={"envSteps": 5000})
    world.visit(*ready_jobs())

    world.report(progress={"phase": "Finished", "attempt": 1}, checkpoint={"envSteps": 6000})
    world.visit(child("head", active=1), child("rollouts", active=1, ready=1), after=1)

    assert world.said("Training") == ("True", "Finishing")
    assert world.status["state"] == "Training"


def test_pods_are_looked_at_only_once_the_cluster_has_been_unready_for_a_while() -> None:
    world = World()
    starting = child("head", active=1), child("rollouts", active=1)
    world.visit()

    assert not world.visit(*starting, after=1).needs_pods
    assert world.visit(*starting, after=4).needs_pods
    assert not world.visit(*ready_jobs(), after=60).needs_pods


def test_pods_are_not_looked_for_before_the_job_controller_has_come_to_their_jobs_or_late() -> None:
    world = World()
    queued = child("head", active=1), child("rollouts", begun=False)
    world.visit()

    assert not world.visit(*queued, after=5).needs_pods
    assert world.visit(*queued, after=10).needs_pods


def test_pods_are_not_looked_at_while_their_number_changes_or_late() -> None:
    world = World()
    starting = child("head", active=1), child("rollouts", active=1)
    world.visit()

    world.seen = replace(world.seen, quiet_for=3)
    assert not world.visit(*starting, after=5).needs_pods
    assert world.visit(*starting, after=10).needs_pods


def test_a_pod_that_leaves_is_looked_at_at_once_and_told_of_while_the_job_goes_on() -> None:
    world = World()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1})
    head, rollouts = ready_jobs()
    world.visit(head, rollouts)
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted by x"}
    leaving = child("head", active=0, terminating=1)
    assert world.visit(leaving, rollouts).needs_pods, "in a moment it is gone with what it says"

    plan = world.visit(leaving, rollouts, pods=PodReport((pod(conditions=(why,)),)))

    assert world.said("ClusterReady") == ("False", "Preempted")
    assert "preempted by x" in world.condition("ClusterReady")["message"]
    assert world.status["state"] == "Recovering"
    assert world.said("Failed") == ("Unknown", "NotFinished")
    assert ("Warning", "Preempted") in [(event.kind, event.reason) for event in plan.events]
    assert not world.visit(leaving, rollouts, after=1).needs_pods
    assert world.said("ClusterReady") == ("False", "Preempted")


def test_what_was_found_stands_until_the_next_look() -> None:
    world = World()
    starting = child("head", active=1), child("rollouts", active=1)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image trainer:1"}}
    world.visit(*starting)
    world.visit(*starting, after=5, pods=PodReport((pod(state=waiting),)))

    assert world.said("ClusterReady") == ("False", "ImagePullFailed")
    again = world.visit(*starting, after=0, pods=PodReport((pod(state=waiting),)))
    assert again.status is None
    assert again.events == ()


def test_waits_get_longer_but_never_longer_than_a_minute() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 100000})
    starting = child("head", active=1), child("rollouts", active=1)
    world.visit(*starting)
    waits = [world.visit(*starting, after=after, pods=PodReport()).again_in or 0.0 for after in (5, 55, 5000)]

    assert waits == sorted(waits)
    assert waits[0] < 10
    assert waits[-1] == 60


def test_finished_head_ends_the_job_with_its_own_words_and_removes_the_other_roles() -> None:
    world = World()
    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*ready_jobs())
    said = '{"stop_reason": "episode_return_mean", "env_steps": 4000, "episode_return_mean": 455.5}'
    report = PodReport((pod(state=ended(0, said, "Completed")),))

    head, rollouts = child("head", conditions=COMPLETE, succeeded=1), child("rollouts", active=1, ready=1)
    plan = world.visit(head, rollouts, after=5, pods=report)

    assert plan.delete == (rollouts,)
    assert (plan.apply, plan.create, plan.again_in) == ((), (), None)
    assert world.said("Succeeded") == ("True", "StopCriterionReached")
    assert world.condition("Succeeded")["message"] == (
        "Stopped by episode_return_mean, mean return 455.5, 4000 env steps."
    )
    assert world.said("Failed")[0] == "False"
    assert world.said("Training") == ("False", "Finished")
    assert world.status["state"] == "Succeeded"
    assert world.status["completionTime"] == "2026-11-30T12:00:05Z"


def test_success_without_the_pods_is_told_from_the_drivers_last_report() -> None:
    world = World()
    progress = {"phase": "Finished", "attempt": 1, "stopReason": "env_steps", "envSteps": 1000}
    world.report(progress=progress)

    world.visit(child("head", conditions=COMPLETE), pods=PodReport())

    assert world.condition("Succeeded")["message"] == "Stopped by env_steps, 1000 env steps."


def test_finished_is_final() -> None:
    world = World()
    world.visit(child("head", conditions=COMPLETE), pods=PodReport())
    before = world.status
    world.edit(stop={"envSteps": 5})

    assert world.visit(after=60) == Plan()
    assert world.visit(child("head", conditions=COMPLETE), after=60) == Plan()
    leftover = child("rollouts", active=1)
    assert world.visit(leftover, after=60) == Plan(delete=(leftover,))
    assert world.status == before


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (2, '{"reason": "UnknownEnvironment", "message": "no CartPool-v1"}', "UnknownEnvironment"),
        (124, '{"reason": "DeadlineExceeded", "message": "no CartPool-v1"}', "DeadlineExceeded"),
        (2, "no CartPool-v1", "InvalidManifest"),
        (124, "no CartPool-v1", "DeadlineExceeded"),
        (2, '{"reason": "no reason\\n", "message": "no CartPool-v1"}', "InvalidManifest"),
        (2, '["no CartPool-v1"]', "InvalidManifest"),
    ],
)
def test_hopeless_exit_fails_the_job_with_its_cause(code: int, message: str, reason: str) -> None:
    world = World()
    head = child("head", conditions=(("Failed", "PodFailurePolicy", "exit code"),), failed=1)

    world.visit(head, pods=PodReport((pod(state=ended(code, message)),)))

    assert world.said("Failed") == ("True", reason)
    assert "no CartPool-v1" in world.condition("Failed")["message"]
    assert world.said("Succeeded")[0] == "False"
    assert world.status["state"] == "Failed"


def test_used_up_restarts_name_the_last_failure() -> None:
    world = World()
    head = child("head", conditions=(("Failed", "FailedIndexes", "Job has failed indexes"),), failed=4)
    pods = (
        pod(name="cartpole-head-0-a", state=ended(1, "first", at="2026-11-30T12:01:00Z")),
        pod(
            name="cartpole-head-0-b",
            created=60,
            state=ended(1, '{"reason": "EnvironmentFailed", "message": "NaN reward"}', at="2026-11-30T12:02:00Z"),
        ),
    )

    world.visit(head, pods=PodReport(pods))

    assert world.said("Failed") == ("True", "EnvironmentFailed")
    message = world.condition("Failed")["message"]
    assert "4 times" in message
    assert "maxRestarts (3)" in message
    assert "NaN reward" in message
    assert "first" not in message


def test_failure_without_any_pod_left_is_still_told() -> None:
    world = World()

    world.visit(child("head", conditions=(("Failed", "FailedIndexes", "x"),), failed=4), pods=PodReport())

    assert world.said("Failed") == ("True", "RestartsExhausted")


def test_startup_deadline_fails_the_job_with_what_kept_it_and_removes_everything() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60})
    starting = child("head", active=1), child("rollouts", active=1)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image trainer:1"}}
    report = PodReport((pod(state=waiting),))
    world.visit(*starting)
    assert world.visit(*starting, after=59, pods=report).delete == ()

    plan = world.visit(*starting, after=1, pods=report)

    assert plan.delete == starting
    assert world.said("Failed") == ("True", "StartupDeadlineExceeded")
    assert "60 s" in world.condition("Failed")["message"]
    assert "no such image trainer:1" in world.condition("Failed")["message"]
    assert world.visit(starting[0], after=1) == Plan(delete=(starting[0],)), "its head goes too"
    assert world.visit(after=1) == Plan(), "and nothing is made again"


def test_next_visit_comes_no_later_than_the_startup_deadline() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60})
    world.visit(*ready_jobs())

    again_in = world.visit(*ready_jobs(), after=50).again_in

    assert again_in is not None
    assert 10 <= again_in < 11


def test_startup_deadline_is_over_once_training_began_even_if_the_head_is_lost_later() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60})
    world.visit(*ready_jobs())
    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*ready_jobs(), after=5)
    world.report(progress={"phase": "Starting", "attempt": 2})

    world.visit(child("head", active=1), child("rollouts", active=1), after=600, pods=PodReport())

    assert world.status["state"] == "Recovering"


def test_children_of_an_earlier_namesake_are_waited_for_and_never_touched() -> None:
    world = World()

    plan = world.visit(child("head", uid="of-the-old-one"))

    assert (plan.apply, plan.create, plan.delete) == ((), (), ())
    assert world.said("ClusterReady") == ("False", "NamesakeTerminating")
    assert "cartpole-head" in world.condition("ClusterReady")["message"]
    assert names(world.visit(after=1).apply)[-1] == "Job/cartpole-rollouts"


def test_job_on_its_way_out_is_waited_for() -> None:
    assert World().visit(child("head", deleting=True)).apply == ()


def test_child_of_a_namesake_found_while_applying_is_tried_again_soon() -> None:
    world = World()
    plan = world.visit(refusals=(Refusal("Service", "cartpole", 409, "it belongs to another object"),))

    assert world.said("ClusterReady") == ("False", "NamesakeTerminating")
    assert "Service cartpole" in world.condition("ClusterReady")["message"]
    assert plan.again_in == 1.0


def test_template_that_the_api_server_refuses_is_told_and_can_be_mended() -> None:
    world = World()
    refusal = Refusal("Job", "cartpole-head", 422, "spec.template.spec.containers[0].image: Required value")

    world.visit(refusals=(refusal,))

    assert world.said("Accepted") == ("False", "InvalidTemplate")
    assert "image: Required value" in world.condition("Accepted")["message"]
    assert world.said("Failed") == ("True", "InvalidTemplate")
    assert world.status["state"] == "Failed"
    assert "completionTime" not in world.status
    assert names(world.visit(after=5).apply)[-1] == "Job/cartpole-rollouts", "tried again"


def test_quota_on_a_child_is_told() -> None:
    world = World()
    words = 'services "cartpole" is forbidden: exceeded quota: small, requested: services=1'

    world.visit(refusals=(Refusal("Service", "cartpole", 403, words),))

    assert world.said("ClusterReady") == ("False", "QuotaExceeded")
    assert "exceeded quota: small" in world.condition("ClusterReady")["message"]


def test_invalid_manifest_makes_nothing_until_it_is_mended() -> None:
    world = World(config={"buffer_size": 10}, seed=-1)

    plan = world.visit()

    assert (plan.apply, plan.create) == ((), ())
    assert world.said("Accepted") == ("False", "InvalidManifest")
    assert "spec.seed" in world.condition("Accepted")["message"]
    assert "buffer_size" in world.condition("Accepted")["message"]
    assert world.said("Failed") == ("True", "InvalidManifest")
    assert "startTime" not in world.status
    assert world.visit(after=600) == Plan(), "nothing to say twice"

    world.edit(config={}, seed=0)
    mended = world.visit(after=600)
    assert names(mended.apply)[-1] == "Job/cartpole-rollouts"
    assert [event.reason for event in mended.events] == ["Accepted"]
    assert world.said("Failed")[0] == "Unknown"
    assert world.status["startTime"] == "2026-11-30T12:20:00Z"
    assert world.status["observedGeneration"] == 2


def test_startup_deadline_may_be_changed_while_the_job_starts() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60})
    world.visit(*ready_jobs())
    world.edit(runPolicy={"startupDeadlineSeconds": 600})

    world.visit(*ready_jobs(), after=100)

    assert world.said("Accepted") == ("True", "Accepted")
    assert world.said("Failed")[0] == "Unknown"


def test_edit_that_is_invalid_leaves_a_running_job_alone() -> None:
    world = World()
    world.all_applied()
    world.report(progress={"phase": "Training", "attempt": 1})
    world.visit(*ready_jobs())
    world.edit(seed=-1)

    plan = world.visit(*ready_jobs(), after=5)

    assert (plan.apply, plan.create, plan.delete) == ((), (), ())
    assert world.said("Accepted") == ("False", "InvalidManifest")
    assert world.said("Training") == ("True", "Training")
    assert world.status["state"] == "Training"
    assert world.status["startTime"] == "2026-11-30T12:00:00Z"
    world.visit(child("head", conditions=COMPLETE), after=5, pods=PodReport())
    assert world.status["state"] == "Succeeded"


def test_workers_that_left_by_themselves_do_not_make_the_cluster_unready() -> None:
    world = World()
    world.all_applied()
    gone = child("rollouts", conditions=COMPLETE, succeeded=1)

    world.visit(child("head", active=1, ready=1), gone)

    assert world.said("ClusterReady") == ("True", "PodsReady")


def test_events_tell_each_change_of_reason_once() -> None:
    world = World()
    told = [event.reason for event in world.visit().events]
    starting = child("head", active=1), child("rollouts", active=1)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image trainer:1"}}
    backing_off = {
        "waiting": {
            "reason": "ImagePullBackOff",
            "message": 'Back-off pulling image "trainer:1": ErrImagePull: no such image trainer:1',
        }
    }
    for state in (waiting, backing_off, waiting):
        plan = world.visit(*starting, after=5, pods=PodReport((pod(state=state),)))
        told += [event.reason for event in plan.events]
    world.report(progress={"phase": "Training", "attempt": 1})
    told += [event.reason for event in world.visit(*ready_jobs(), after=5).events]
    done = world.visit(child("head", conditions=COMPLETE), after=5, pods=PodReport())
    told += [event.reason for event in done.events]

    assert told == ["ImagePullFailed", "PodsReady", "Training", "StopCriterionReached"]
    assert done.events[0].kind == "Normal"


def test_status_is_the_operators_part_only() -> None:
    world = World()
    world.report(progress={"phase": "Training", "attempt": 1}, checkpoint={"envSteps": 1})

    plan = world.visit(*ready_jobs())

    assert plan.status is not None
    assert not {"progress", "checkpoint"} & set(plan.status)


def test_namespace_that_is_being_deleted_gets_its_jobs_deleted_or_their_pods_would_stay() -> None:
    world = World()
    world.all_applied()
    jobs = child("head", active=0), child("rollouts", active=0)
    world.visit(*jobs)

    plan = world.visit(*jobs, after=10, pods=PodReport(namespace_ends=True))

    assert plan == Plan(delete=jobs)


def test_uid_of_the_job_decides_which_children_are_its_own() -> None:
    assert child("head").owner == UID
