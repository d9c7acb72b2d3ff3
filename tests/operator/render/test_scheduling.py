"""How pods are taken in: Kueue's Workload, a gang's group, priorities, and places of a collective group."""

from typing import Any

import pytest

from operator_kit.kueue import ADMISSION, SERVED
from operator_kit.manifests import CONFIG, UID, job
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import ANNOTATION_MANIFEST, Served, manifest_hash, render
from rltrain_operator.render.workload import flavors, placed, workload

Object = dict[str, Any]
VOLCANO = Served(volcano=True)


def jobs_of(made_for: RLTrainingJob, served: Served = SERVED) -> list[Object]:
    return [made for made in render(made_for, CONFIG, served=served) if made["kind"] == "Job"]


def pods_of(made_for: RLTrainingJob, served: Served = SERVED) -> dict[str, Object]:
    """Pod templates, by role."""
    return {
        made["metadata"]["labels"]["rltrain.dev/role"]: made["spec"]["template"] for made in jobs_of(made_for, served)
    }


def test_a_workload_has_a_pod_set_for_each_role_and_belongs_to_the_job() -> None:
    made_for = job("DDPPO", workers={"replicas": 4}, scheduling={"queueName": "team"})
    made = workload(made_for, CONFIG, SERVED, jobs_of(made_for), None)
    assert made["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert made["metadata"]["ownerReferences"][0]["uid"] == UID
    assert made["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "rltrain", "the operator watches for it"
    assert made["metadata"]["annotations"] == {ANNOTATION_MANIFEST: manifest_hash(made_for)}
    spec = made["spec"]
    assert spec["queueName"] == "team"
    assert "priority" not in spec
    assert [(each["name"], each["count"]) for each in spec["podSets"]] == [("head", 1), ("workers", 4)]
    assert spec["podSets"][1]["template"]["spec"]["containers"][0]["image"] == "trainer:1"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1beta2", {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "urgent"}}),
        ("v1beta1", {"priorityClassName": "urgent", "priorityClassSource": "scheduling.k8s.io/priorityclass"}),
    ],
)
def test_the_priority_is_said_as_each_version_has_it(version: str, expected: Object) -> None:
    made_for = job(scheduling={"queueName": "team", "priorityClassName": "urgent"})
    served = Served(kueue=version)
    spec = workload(made_for, CONFIG, served, jobs_of(made_for), 7)["spec"]
    assert {key: value for key, value in spec.items() if key not in ("queueName", "podSets")} == {
        "priority": 7,
        **expected,
    }


def test_pods_go_where_the_flavors_and_the_checks_of_an_admission_say_beside_what_the_user_says() -> None:
    template = {"spec": {"nodeSelector": {"own": "yes"}, "tolerations": [{"key": "own", "operator": "Exists"}]}}
    made_for = job(head={"template": template}, scheduling={"queueName": "team"})
    update = {"name": "head", "annotations": {"provisioned": "here"}, "labels": {"a": "b"}, "nodeSelector": {"n": "1"}}
    seen = {"status": {"admission": ADMISSION, "admissionChecks": [{"podSetUpdates": [update]}]}}
    assert flavors(seen) == ("fast",)
    found = {"fast": {"spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}}}
    head, rollouts = placed(jobs_of(made_for), seen, found)
    assert head["spec"]["template"]["spec"]["nodeSelector"] == {"own": "yes", "disk": "ssd", "n": "1"}
    assert [each["key"] for each in head["spec"]["template"]["spec"]["tolerations"]] == ["own", "gpu"]
    assert head["spec"]["template"]["metadata"]["annotations"] == {"provisioned": "here"}
    assert head["spec"]["template"]["metadata"]["labels"]["a"] == "b"
    assert rollouts["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_a_flavor_without_labels_changes_nothing() -> None:
    made_for = job(scheduling={"queueName": "team"})
    assert placed(jobs_of(made_for), {"status": {"admission": ADMISSION}}, {"fast": {}}) == jobs_of(made_for)


def test_replicas_are_part_of_what_a_queue_has_admitted() -> None:
    def of(plan: str, role: str, replicas: int, **scheduling: str) -> str:
        spec: Object = {role: {"replicas": replicas}, "scheduling": scheduling}
        return manifest_hash(job(plan, **spec))

    assert of("DQN", "rollouts", 1) == of("DQN", "rollouts", 3)
    assert of("DQN", "rollouts", 1, queueName="team") != of("DQN", "rollouts", 3, queueName="team")
    assert of("DDPPO", "workers", 2, queueName="team") != of("DDPPO", "workers", 4, queueName="team")


def test_a_gang_is_the_head_and_the_least_of_each_role_that_training_needs() -> None:
    scheduling = {"gang": "Volcano", "queueName": "team", "priorityClassName": "urgent"}
    roles: Object = {
        "rollouts": {"replicas": 8, "minReplicas": 3},
        "replay": {"replicas": 2},
        "learners": {"replicas": 1},
    }
    made_for = job("Apex", scheduling=scheduling, **roles)
    (group,) = [made for made in render(made_for, CONFIG, served=VOLCANO) if made["kind"] == "PodGroup"]
    assert group["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert group["spec"] == {"minMember": 1 + 3 + 2 + 1, "queue": "team", "priorityClassName": "urgent"}
    for template in pods_of(made_for, VOLCANO).values():
        assert template["spec"]["schedulerName"] == "volcano"
        assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group["metadata"]["name"]


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha2"])
def test_kubernetes_own_gang_is_the_same_in_each_version(version: str) -> None:
    scheduling = {"gang": "Kubernetes", "priorityClassName": "urgent"}
    made_for = job(scheduling=scheduling, rollouts={"replicas": 8, "minReplicas": 3})
    served = Served(pod_groups=version)
    (group,) = [made for made in render(made_for, CONFIG, served=served) if made["kind"] == "PodGroup"]
    assert group["apiVersion"] == f"scheduling.k8s.io/{version}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == UID
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 1 + 3}}, "priorityClassName": "urgent"}
    for template in pods_of(made_for, served).values():
        assert template["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert "schedulerName" not in template["spec"]
        assert "annotations" not in template["metadata"]


EVERYTHING = Served(kueue="v1beta2", volcano=True, pod_groups="v1beta1")
BETA, ALPHA = Served(pod_groups="v1beta1"), Served(pod_groups="v1alpha2")


@pytest.mark.parametrize(
    ("scheduling", "served", "expected"),
    [
        ({}, SERVED, None),
        ({}, VOLCANO, "scheduling.volcano.sh"),
        ({}, EVERYTHING, "scheduling.volcano.sh"),
        ({}, BETA, "scheduling.k8s.io"),
        ({}, ALPHA, None),
        ({"gang": "Kubernetes"}, ALPHA, "scheduling.k8s.io"),
        ({"gang": "Kubernetes"}, EVERYTHING, "scheduling.k8s.io"),
        ({"gang": "None"}, EVERYTHING, None),
        ({"queueName": "team"}, EVERYTHING, None),
    ],
)
def test_auto_takes_volcano_then_kubernetes_beta_where_they_are_there_and_no_queue_is_named(
    scheduling: Object, served: Served, expected: str | None
) -> None:
    objects = render(job(scheduling=scheduling), CONFIG, served=served)
    groups = [made["apiVersion"].partition("/")[0] for made in objects if made["kind"] == "PodGroup"]
    assert groups == ([] if expected is None else [expected])
    head = pods_of(job(scheduling=scheduling), served)["head"]["spec"]
    assert ("schedulerName" in head) is (expected == "scheduling.volcano.sh")
    assert ("schedulingGroup" in head) is (expected == "scheduling.k8s.io")


def test_a_priority_class_is_every_pods() -> None:
    pods = pods_of(job(scheduling={"priorityClassName": "urgent"}))
    assert {template["spec"]["priorityClassName"] for template in pods.values()} == {"urgent"}
    assert all("priorityClassName" not in template["spec"] for template in pods_of(job()).values())


def test_ranks_are_packed_or_spread_and_the_head_stays_where_it_likes() -> None:
    def spec(**topology: Any) -> Object:
        pods = pods_of(job("DDPPO", scheduling={"topology": {"key": "zone", **topology}}))
        assert pods["head"]["spec"].keys().isdisjoint({"affinity", "topologySpreadConstraints"})
        found: Object = pods["workers"]["spec"]
        return found

    ranks = {"matchLabels": {"rltrain.dev/job-uid": UID, "rltrain.dev/role": "workers"}}
    term = {"topologyKey": "zone", "labelSelector": ranks}
    assert spec()["affinity"]["podAffinity"] == {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
    }
    assert spec(required=True)["affinity"]["podAffinity"] == {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    assert spec(policy="Spread")["topologySpreadConstraints"] == [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": ranks}
    ]
    (strict,) = spec(policy="Spread", required=True)["topologySpreadConstraints"]
    assert strict["whenUnsatisfiable"] == "DoNotSchedule"


def test_learners_that_average_are_placed_and_the_users_template_wins() -> None:
    mine = {"spec": {"priorityClassName": "mine", "topologySpreadConstraints": []}}
    scheduling = {"topology": {"key": "zone", "policy": "Spread"}, "priorityClassName": "urgent"}
    assert (
        "topologySpreadConstraints"
        in pods_of(job("Apex", learners={"replicas": 2}, scheduling=scheduling))["learners"]["spec"]
    )
    pods = pods_of(job("Apex", learners={"replicas": 2, "template": mine}, scheduling=scheduling))
    assert pods["learners"]["spec"]["topologySpreadConstraints"] == []
    assert pods["learners"]["spec"]["priorityClassName"] == "mine"
