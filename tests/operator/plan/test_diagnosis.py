"""Why pods aren't ready, in the words of whoever knows."""

import pytest

from operator_kit.seen import Object, child, ended, pod
from rltrain_operator.plan import PodReport, wants_events
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.diagnosis import diagnose

JOBS = (child("head", active=1), child("rollouts", active=1))


def found(*pods: Object, warnings: dict[str, str] | None = None) -> Verdict:
    return diagnose(JOBS, PodReport(pods, warnings or {}))


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def unscheduled(message: str) -> Object:
    return pod(conditions=({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},))


def test_image_that_can_not_be_pulled_is_told_in_the_kubelets_words() -> None:
    verdict = found(pod(state=waiting("ErrImagePull", "failed to resolve trainer:1: not found")))

    assert (verdict.status, verdict.reason) == ("False", "ImagePullFailed")
    assert verdict.message == "Pod cartpole-head-0-abcde: failed to resolve trainer:1: not found"


def test_back_off_says_the_same_as_the_error_so_that_the_condition_does_not_flap() -> None:
    error = found(pod(state=waiting("ErrImagePull", "failed to resolve trainer:1")))
    words = 'Back-off pulling image "trainer:1": ErrImagePull: failed to resolve trainer:1'

    assert found(pod(state=waiting("ImagePullBackOff", words))) == error


def test_image_is_named_even_where_the_kubelet_does_not() -> None:
    assert "trainer:1" in found(pod(state=waiting("InvalidImageName"))).message


def test_unschedulable_pod_is_told_in_the_schedulers_words() -> None:
    verdict = found(unscheduled("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))

    assert verdict.reason == "Unschedulable"
    assert "1 Insufficient nvidia.com/gpu" in verdict.message


@pytest.mark.parametrize("words", ["0/1 nodes are available: 1 Insufficient cpu.", "0/1 nodes are unavailable: busy."])
def test_pod_of_a_gang_that_fits_nowhere_speaks_for_those_that_wait_for_it(words: str) -> None:
    lacking = unscheduled(words)
    lacking["metadata"] |= {"name": "cartpole-rollouts-0-x", "labels": {"rltrain.dev/role": "rollouts"}}
    verdict = found(unscheduled("pod group is unschedulable"), lacking)

    assert verdict.message.startswith(f"Pod cartpole-rollouts-0-x (and 1 more): {words}")


def test_pod_killed_for_memory_is_told_as_such() -> None:
    verdict = found(pod(state=ended(137, reason="OOMKilled")))

    assert verdict.reason == "OutOfMemory"
    assert "exited 137 (OOMKilled)" in verdict.message


def test_crash_loop_carries_the_last_words_and_how_often() -> None:
    verdict = found(
        pod("rollouts", "cartpole-rollouts-0-x", state=waiting("CrashLoopBackOff"), last=ended(1, "boom"), restarts=7)
    )

    assert verdict.reason == "PodsFailing"
    assert "exited 1: boom, restarted 7 times" in verdict.message


def test_failing_init_container_is_named() -> None:
    verdict = found(pod(init=ended(2, "spec.code.uri.sha256: wrong"), state=waiting("PodInitializing")))

    assert verdict.reason == "InitContainerFailed"
    assert "fetch-code" in verdict.message
    assert "spec.code.uri.sha256: wrong" in verdict.message


def test_missing_secret_or_configmap_is_told() -> None:
    verdict = found(pod(state=waiting("CreateContainerConfigError", 'secret "keys" not found')))

    assert verdict.reason == "ContainerCannotStart"
    assert 'secret "keys" not found' in verdict.message


def test_volume_that_can_not_be_mounted_is_told_from_the_pods_event() -> None:
    stuck = pod(state=waiting("ContainerCreating"))

    assert list(wants_events(JOBS, [stuck])) == [stuck["metadata"]["uid"]]
    verdict = found(stuck, warnings={stuck["metadata"]["uid"]: 'configmap "code" not found'})
    assert verdict.reason == "PodSetupFailed"
    assert 'configmap "code" not found' in verdict.message


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('Error creating: pods "x-1" is forbidden: exceeded quota: small', "QuotaExceeded"),
        ('Error creating: pods "x-1" is forbidden: violates PodSecurity "restricted:latest"', "PodSecurityViolated"),
        ('Error creating: pods "x-1" is forbidden: error looking up service account', "PodsRefused"),
    ],
)
def test_pod_that_can_not_even_be_made_is_told_from_the_jobs_event(words: str, reason: str) -> None:
    jobs = (child("head"), child("rollouts", active=1))

    assert list(wants_events(jobs, [])) == [jobs[0].uid]
    verdict = diagnose(jobs, PodReport((), {jobs[0].uid: words}))
    assert verdict.reason == reason
    assert verdict.message == f"No pod can be made for head: {words.partition('forbidden: ')[2]}", "no changing name"


def test_old_events_of_a_job_that_has_its_pods_are_not_believed() -> None:
    assert found(pod(state={"running": {}}), warnings={JOBS[0].uid: "exceeded quota"}).reason == "PodsStarting"


def test_head_comes_first_and_the_rest_is_counted() -> None:
    bad = waiting("ErrImagePull", "trainer:1 not found")

    verdict = found(pod("rollouts", "cartpole-rollouts-0-x", state=bad), pod(state=bad))

    assert verdict.message.startswith("Pod cartpole-head-0-abcde (and 1 more): ")


def test_only_the_newest_attempt_of_a_pod_counts() -> None:
    old = pod(name="cartpole-head-0-old", state=ended(1, "boom"))
    new = pod(name="cartpole-head-0-new", state={"running": {}}, created=30)

    assert found(old).reason == "PodsFailing"
    assert found(new, old).reason == "PodsStarting"


def test_pod_on_its_way_out_does_not_count() -> None:
    leaving = pod(state=ended(1, "boom"))
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T12:02:00Z"

    assert found(leaving).reason == "PodsStarting"


def test_pod_that_ended_well_is_no_trouble() -> None:
    assert found(pod(state=ended(0, reason="Completed"))).reason == "PodsStarting"


def test_endless_words_are_cut() -> None:
    assert len(found(pod(state=ended(1, "x" * 100_000))).message) < 3000


def disrupted(why: str, message: str) -> Object:
    return {"type": "DisruptionTarget", "status": "True", "reason": why, "message": message}


@pytest.mark.parametrize("role", ["head", "rollouts"])
@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("PreemptionByScheduler", "Preempted"),
        ("EvictionByEvictionAPI", "Evicted"),
        ("TerminationByKubelet", "Evicted"),
        ("DeletionByTaintManager", "Evicted"),
    ],
)
def test_a_pod_that_has_to_go_for_the_clusters_sake_is_told_as_such(role: str, why: str, expected: str) -> None:
    name = f"cartpole-{role}-0-old"
    lost = pod(role, name, state=ended(143), conditions=(disrupted(why, "for a more important pod"),))
    expected_words = f"Pod {name}: for a more important pod"

    verdict = found(lost)
    assert (verdict.reason, verdict.message) == (expected, expected_words), "and not as one that has failed"
    leaving = {**lost, "metadata": {**lost["metadata"], "deletionTimestamp": "2026-11-30T12:00:00Z"}}
    verdict = found(leaving)
    assert (verdict.reason, verdict.message) == (expected, expected_words)


def test_the_kubelets_own_words_about_an_eviction_are_told() -> None:
    lost = pod(conditions=(disrupted("TerminationByKubelet", "Pod was terminated by kubelet"),))
    lost["status"]["message"] = "The node was low on resource: memory."
    assert "low on resource: memory" in found(lost).message


def test_an_eviction_is_over_once_another_pod_is_ready_in_its_place() -> None:
    lost = pod("rollouts", "cartpole-rollouts-0-old", conditions=(disrupted("TerminationByKubelet", "low"),))
    successor = pod("rollouts", "cartpole-rollouts-0-new", created=5)
    assert found(lost, successor).reason == "Evicted", "it isn't ready yet"
    successor["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert found(lost, successor, unscheduled("0/1 nodes are available")).reason == "Unschedulable"


def test_a_successor_that_can_not_run_matters_more_than_why_its_predecessor_left() -> None:
    lost = pod("head", "cartpole-head-0-old", conditions=(disrupted("EvictionByEvictionAPI", "drained"),))
    successor = pod("head", "cartpole-head-0-new", created=5, state=waiting("ErrImagePull", "not found"))
    assert found(lost, successor).reason == "ImagePullFailed"
