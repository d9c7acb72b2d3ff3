"""What a job's objects have in common."""

from dataclasses import replace
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from operator_kit.manifests import CONFIG, UID, job
from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import ANNOTATION_HASH, ANNOTATION_MANIFEST, Served, manifest_hash, render

JOBS = {
    "dqn": job(),
    "dqn alone": job(rollouts={"replicas": 0}),
    "ddppo": job("DDPPO"),
    "apex": job("Apex", replay={"replicas": 2}, learners={"replicas": 1}),
    "apex with two learners": job("Apex", learners={"replicas": 2}),
    "everything": job(
        "DDPPO",
        image="mine:2",
        imagePullPolicy="Always",
        imagePullSecrets=[{"name": "registry"}],
        code={"uri": {"url": "https://example.com/code.zip", "sha256": "0" * 64}},
        serviceAccountName="me",
        envFrom=[{"secretRef": {"name": "keys"}}, {"prefix": "A_", "configMapRef": {"name": "vars"}}],
        head={"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "2Gi"}}, "sharedMemorySize": "1Gi"},
        workers={"replicas": 3, "resources": {"limits": {"nvidia.com/gpu": "1"}}},
        checkpoint={"storage": {"size": "5Gi", "storageClassName": "fast"}},
    ),
    "code from a claim": job(code={"claim": {"name": "home", "path": "/me/code/"}}),
    "code from a configmap": job(code={"configMap": {"name": "code"}}),
}


def by_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [made for made in objects if made["kind"] == kind]


@pytest.mark.parametrize("made_for", JOBS.values(), ids=JOBS)
def test_every_object_is_one_that_kubernetes_knows(made_for: RLTrainingJob) -> None:
    for made in render(made_for, CONFIG, token="t"):
        kubernetes_validate.validate(made, "1.36", strict=True)


def test_names_of_children_are_those_that_people_and_pods_rely_on() -> None:
    names = {(made["kind"], made["metadata"]["name"]) for made in render(job("DDPPO"), CONFIG, token="t")}

    assert names == {
        ("Service", "cartpole"),
        ("NetworkPolicy", "cartpole"),
        ("Secret", "cartpole-token"),
        ("ConfigMap", "cartpole-manifest"),
        ("ConfigMap", "cartpole-defaults"),
        ("ServiceAccount", "cartpole-driver"),
        ("Role", "cartpole-driver"),
        ("RoleBinding", "cartpole-driver"),
        ("PersistentVolumeClaim", "cartpole-checkpoints"),
        ("Job", "cartpole-head"),
        ("Job", "cartpole-workers"),
    }


def test_everything_but_the_claim_goes_with_the_job() -> None:
    for made in render(job(), CONFIG, token="t"):
        metadata = made["metadata"]
        assert metadata["namespace"] == "team"
        assert metadata["labels"]["rltrain.dev/job"] == "cartpole"
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "rltrain"
        if made["kind"] == "PersistentVolumeClaim":
            assert "ownerReferences" not in metadata
            assert "rltrain.dev/job-uid" not in metadata["labels"]
        else:
            assert metadata["labels"]["rltrain.dev/job-uid"] == UID
            assert [(ref["kind"], ref["uid"], ref["controller"]) for ref in metadata["ownerReferences"]] == [
                ("RLTrainingJob", UID, True)
            ]


def test_secret_is_only_made_with_a_token_and_can_not_be_changed() -> None:
    assert by_kind(render(job(), CONFIG), "Secret") == []
    (secret,) = by_kind(render(job(), CONFIG, token="abc"), "Secret")
    assert secret["stringData"] == {"token": "abc"}
    assert secret["immutable"] is True


def test_manifest_in_the_configmap_is_the_job_again() -> None:
    made_for = job(env={"id": "CartPole-v1", "kwargs": {"mode": None}}, config={"lr": 1e-5, "grad_clip": None})
    configmap = by_kind(render(made_for, CONFIG), "ConfigMap")[0]

    tree = YAML(typ="safe").load(configmap["data"]["job.yaml"])
    again = RLTrainingJob.model_validate(tree)

    assert again.spec == made_for.spec
    assert again.metadata.uid == UID


def test_driver_may_patch_the_status_of_its_own_job_and_nothing_else() -> None:
    objects = render(job(), CONFIG)

    assert by_kind(objects, "Role")[0]["rules"] == [
        {
            "apiGroups": ["rltrain.dev"],
            "resources": ["rltrainingjobs/status"],
            "resourceNames": ["cartpole"],
            "verbs": ["patch"],
        }
    ]
    subject = {"kind": "ServiceAccount", "name": "cartpole-driver", "namespace": "team"}
    assert by_kind(objects, "RoleBinding")[0]["subjects"] == [subject]


def test_users_own_service_account_is_bound_and_none_is_made() -> None:
    objects = render(job(serviceAccountName="me"), CONFIG)

    assert by_kind(objects, "ServiceAccount") == []
    assert by_kind(objects, "RoleBinding")[0]["subjects"][0]["name"] == "me"
    for made in by_kind(objects, "Job"):
        assert made["spec"]["template"]["spec"]["serviceAccountName"] == "me"


def test_network_policy_lets_only_the_jobs_own_pods_in() -> None:
    (policy,) = by_kind(render(job(), CONFIG), "NetworkPolicy")

    own = {"matchLabels": {"rltrain.dev/job-uid": UID}}
    assert policy["spec"] == {
        "podSelector": own,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": own}]}],
    }


def test_restricted_pods_get_out_to_one_another_to_dns_to_the_api_server_and_where_they_are_let() -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    served = Served(api_server=(("10.0.0.1", 6443), ("fd00::1", 6443)))

    (policy,) = by_kind(render(job(), replace(CONFIG, egress=(rule,)), served=served), "NetworkPolicy")

    own = {"podSelector": {"matchLabels": {"rltrain.dev/job-uid": UID}}}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["ingress"] == [{"from": [own]}]
    assert policy["spec"]["egress"] == [
        {"to": [own]},
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"protocol": "TCP", "port": 6443}]},
        {"to": [{"ipBlock": {"cidr": "fd00::1/128"}}], "ports": [{"protocol": "TCP", "port": 6443}]},
        rule,
    ]


def test_no_rule_at_all_is_the_narrowest() -> None:
    (policy,) = by_kind(render(job(), replace(CONFIG, egress=())), "NetworkPolicy")

    assert len(policy["spec"]["egress"]) == 2, "one another and DNS"


def test_service_names_pods_before_they_are_ready() -> None:
    (service,) = by_kind(render(job(), CONFIG), "Service")

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"rltrain.dev/job-uid": UID, "rltrain.dev/role": "head"}


def test_claim_is_as_large_as_asked_and_not_made_where_the_user_has_one() -> None:
    sized = job(checkpoint={"storage": {"size": "5Gi", "storageClassName": "fast"}})
    (claim,) = by_kind(render(sized, CONFIG), "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "5Gi"
    assert claim["spec"]["storageClassName"] == "fast"

    (claim,) = by_kind(render(job(), CONFIG), "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "10Gi"
    assert "storageClassName" not in claim["spec"]

    users = render(job(checkpoint={"storage": {"claim": "mine"}}), CONFIG)
    assert by_kind(users, "PersistentVolumeClaim") == []
    head = by_kind(users, "Job")[0]["spec"]["template"]["spec"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}} in head["volumes"]


def test_hash_tells_two_renderings_apart_and_is_the_same_for_the_same() -> None:
    def hashes(made_for: RLTrainingJob) -> dict[str, str]:
        return {
            f"{made['kind']}/{made['metadata']['name']}": made["metadata"]["annotations"][ANNOTATION_HASH]
            for made in render(made_for, CONFIG)
        }

    assert hashes(job()) == hashes(job())
    changed = hashes(job(serviceAccountName="me"))
    assert changed["RoleBinding/cartpole-driver"] != hashes(job())["RoleBinding/cartpole-driver"]
    assert changed["Service/cartpole"] == hashes(job())["Service/cartpole"]


def test_hash_of_the_manifest_ignores_what_the_operator_reads_live_and_defaults_written_out() -> None:
    same = job(runPolicy={"startupDeadlineSeconds": 5}, seed=0, config={"gamma": 0.99})

    assert manifest_hash(same) == manifest_hash(job())
    assert manifest_hash(job(seed=1)) != manifest_hash(job())
    assert manifest_hash(job(config={"grad_clip": None})) != manifest_hash(job())
    for made in by_kind(render(job(), CONFIG), "Job"):
        assert made["metadata"]["annotations"][ANNOTATION_MANIFEST] == manifest_hash(job())


def test_template_that_can_not_be_merged_is_refused_with_all_its_places() -> None:
    bad = job(
        head={"template": {"spec": {"restartPolicy": "Always", "containers": [{"env": []}]}}},
        rollouts={"replicas": 1, "template": {"metdata": {}}},
    )

    with pytest.raises(InvalidManifest) as raised:
        render(bad, CONFIG)

    assert [problem.path for problem in raised.value.problems] == [
        "spec.head.template.spec.restartPolicy",
        "spec.head.template.spec.containers[0]",
        "spec.rollouts.template.metdata",
    ]


@settings(max_examples=30, deadline=None)
@given(name=st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True))
def test_any_legal_name_gives_children_and_pods_of_at_most_63_characters(name: str) -> None:
    objects = render(job("DDPPO", name=name, workers={"replicas": 1000}), CONFIG, token="t")

    assert len({(made["kind"], made["metadata"]["name"]) for made in objects}) == len(objects)
    for made in objects:
        assert len(made["metadata"]["name"]) <= 63
        if made["kind"] == "Job":
            last = made["spec"]["completions"] - 1
            assert len(f"{made['metadata']['name']}-{last}-abcde") <= 63
