"""Pods of each role: what they run, see and may do."""

from collections import UserDict
from typing import Any

import pytest

from operator_kit.manifests import CONFIG, UID, job
from rltrain.api.job import RLTrainingJob
from rltrain.runtime.pod import Pod
from rltrain_operator.render import OperatorConfig, render
from rltrain_operator.render.pod import object_store_bytes


def pod(made_for: RLTrainingJob, role: str, config: OperatorConfig = CONFIG) -> dict[str, Any]:
    """The pod template of a role."""
    for made in render(made_for, config):
        if made["kind"] == "Job" and made["metadata"]["labels"]["rltrain.dev/role"] == role:
            template: dict[str, Any] = made["spec"]["template"]
            return template
    raise AssertionError(f"no Job for {role}")


def container(made_for: RLTrainingJob, role: str, config: OperatorConfig = CONFIG) -> dict[str, Any]:
    found: dict[str, Any] = pod(made_for, role, config)["spec"]["containers"][0]
    return found


def env(made_for: RLTrainingJob, role: str) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(made_for, role)["env"]}


@pytest.mark.parametrize(
    ("plan", "role"), [("DQN", "head"), ("DQN", "rollouts"), ("DDPPO", "workers"), ("Apex", "rollouts")]
)
def test_pods_pass_the_restricted_standard(plan: str, role: str) -> None:
    spec = pod(job(plan, code={"uri": {"url": "https://example.com/a.py"}}), role)["spec"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 1000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    for made in [*spec["containers"], *spec["initContainers"]]:
        assert made["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert {next(iter(set(volume) - {"name"})) for volume in spec["volumes"]} <= {
        *("configMap", "emptyDir", "persistentVolumeClaim")
    }


def test_only_the_head_gets_a_token_of_the_api_and_the_volume() -> None:
    head, rollouts = pod(job(), "head")["spec"], pod(job(), "rollouts")["spec"]

    assert head["automountServiceAccountToken"] is True
    assert rollouts["automountServiceAccountToken"] is False
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "cartpole-checkpoints"}} in head["volumes"]
    assert {"name": "data", "mountPath": "/data"} in head["containers"][0]["volumeMounts"]
    assert "/data" not in [mount["mountPath"] for mount in rollouts["containers"][0]["volumeMounts"]]


def test_each_role_runs_its_part_of_the_entry_point_and_is_ready_at_its_port() -> None:
    head, workers = container(job("DDPPO"), "head"), container(job("DDPPO"), "workers")

    assert (head["args"], head["readinessProbe"]["tcpSocket"]) == (["head"], {"port": 6379})
    assert (workers["args"], workers["readinessProbe"]["tcpSocket"]) == (["node"], {"port": 6380})


def test_pods_know_their_job_their_head_and_themselves() -> None:
    seen = env(job("DDPPO"), "workers")

    assert seen["RLTRAIN_JOB_NAME"] == "cartpole"
    assert seen["RLTRAIN_JOB_NAMESPACE"] == "team"
    assert seen["RLTRAIN_JOB_UID"] == UID
    assert seen["RLTRAIN_ROLE"] == "workers"
    assert seen["RLTRAIN_HEAD"] == "cartpole-head-0.cartpole"
    assert pod(job("DDPPO"), "head")["spec"]["subdomain"] == "cartpole"
    assert seen["RLTRAIN_POD_IP"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert seen["RAY_AUTH_MODE"] == "token"
    assert seen["RAY_AUTH_TOKEN"] == {"secretKeyRef": {"name": "cartpole-token", "key": "token"}}
    assert seen["HOME"] == "/tmp"
    assert "PYTHONPATH" not in seen


@pytest.mark.parametrize(("plan", "role"), [("DQN", "head"), ("DQN", "rollouts"), ("DDPPO", "workers")])
def test_pods_are_told_what_their_entry_point_reads_and_nothing_more(plan: str, role: str) -> None:
    read: set[str] = set()

    class Recorded(UserDict[str, str]):
        def __getitem__(self, name: str) -> str:
            read.add(name)
            return super().__getitem__(name)

    told = {name for name in env(job(plan), role) if name.startswith("RLTRAIN_")}
    Pod.from_environment(Recorded(dict.fromkeys(told, "1")))

    assert told <= read


def test_shared_memory_is_a_memory_volume_of_the_roles_size_and_ray_is_told_a_bit_less() -> None:
    made_for = job(head={"sharedMemorySize": "2Gi"})

    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}} in pod(made_for, "head")["spec"][
        "volumes"
    ]
    assert int(env(made_for, "head")["RLTRAIN_OBJECT_STORE_BYTES"]) == 2 * 1024**3 * 7 // 8
    assert int(env(made_for, "rollouts")["RLTRAIN_OBJECT_STORE_BYTES"]) == 512 * 1024**2 * 7 // 8


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [("8G", 7_000_000_000), ("1.5Gi", 1_409_286_144), ("800000000", 700_000_000), ("800000000000m", 700_000_000)],
)
def test_quantities_of_any_form_are_read(size: str, bytes_: int) -> None:
    assert object_store_bytes(size) == bytes_


def test_ray_is_never_told_less_than_it_takes() -> None:
    assert object_store_bytes("64Mi") == 75 * 1024 * 1024


def test_image_is_the_manifests_or_the_operators_with_its_pull_policy() -> None:
    config = OperatorConfig("trainer:1", image_pull_policy="Always")

    assert container(job(), "head", config)["image"] == "trainer:1"
    assert container(job(), "head", config)["imagePullPolicy"] == "Always"
    assert container(job(image="mine:2"), "head", config)["image"] == "mine:2"
    assert "imagePullPolicy" not in container(job(image="mine:2"), "head", config)
    assert container(job(image="mine:2", imagePullPolicy="Never"), "head", config)["imagePullPolicy"] == "Never"


def test_secrets_to_pull_with_are_the_manifests_or_the_operators_for_its_own_image() -> None:
    config = OperatorConfig("trainer:1", image_pull_secrets=("mirror",))

    def secrets(**spec: Any) -> object:
        return pod(job(**spec), "head", config)["spec"].get("imagePullSecrets")

    assert secrets() == [{"name": "mirror"}]
    assert secrets(image="mine:2") is None
    assert secrets(imagePullSecrets=[{"name": "mine"}]) == [{"name": "mine"}]
    assert secrets(image="mine:2", imagePullSecrets=[{"name": "mine"}]) == [{"name": "mine"}]


def test_collective_defaults_yield_to_the_users_environment() -> None:
    made_for = job("DDPPO", envFrom=[{"configMapRef": {"name": "mine"}}])

    sources = container(made_for, "workers")["envFrom"]
    assert sources == [{"configMapRef": {"name": "cartpole-defaults"}}, {"configMapRef": {"name": "mine"}}]
    assert not [name for name in env(made_for, "workers") if name.startswith(("NCCL", "GLOO", "TORCH"))]
    assert container(made_for, "head")["envFrom"] == sources[1:]
    (defaults,) = (made for made in render(made_for, CONFIG) if made["metadata"]["name"] == "cartpole-defaults")
    assert defaults["data"]["NCCL_SOCKET_IFNAME"] == "eth0"


def test_learners_that_learn_together_have_the_collectives_defaults_and_one_alone_has_not() -> None:
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    two = job("Apex", learners={"replicas": 2, **gpus})

    assert container(two, "learners")["envFrom"] == [{"configMapRef": {"name": "cartpole-defaults"}}]
    assert container(two, "learners")["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert "envFrom" not in container(two, "rollouts")
    assert "envFrom" not in container(job("Apex", learners={"replicas": 1, **gpus}), "learners")


def test_code_from_a_configmap_is_on_the_path_of_every_pod() -> None:
    made_for = job(code={"configMap": {"name": "envs"}})

    for role in ("head", "rollouts"):
        spec = pod(made_for, role)["spec"]
        assert {"name": "code", "configMap": {"name": "envs"}} in spec["volumes"]
        assert {"name": "code", "mountPath": "/code", "readOnly": True} in spec["containers"][0]["volumeMounts"]
        assert env(made_for, role)["PYTHONPATH"] == "/code"


def test_ones_own_plan_has_the_pods_of_its_base_with_the_code_on_their_path() -> None:
    code = {"configMap": {"name": "my-plans"}}
    made_for = job("my_plans:mine", basePlan="Apex", replay={"replicas": 1}, learners={"replicas": 1}, code=code)

    for role in ("head", "rollouts", "replay", "learners"):
        assert env(made_for, role)["PYTHONPATH"] == "/code"
    (manifest,) = (m for m in render(made_for, CONFIG) if m["metadata"]["name"] == "cartpole-manifest")
    assert '"plan": "my_plans:mine"' in manifest["data"]["job.yaml"]
    assert '"basePlan": "Apex"' in manifest["data"]["job.yaml"]


def test_code_from_a_claim_is_mounted_read_only_at_its_folder() -> None:
    spec = pod(job(code={"claim": {"name": "home", "path": "/me/code/"}}), "rollouts")["spec"]

    assert {"name": "code", "persistentVolumeClaim": {"claimName": "home", "readOnly": True}} in spec["volumes"]
    mount = {"name": "code", "mountPath": "/code", "readOnly": True, "subPath": "me/code"}
    assert mount in spec["containers"][0]["volumeMounts"]


def test_code_from_an_address_is_fetched_before_the_pod_starts() -> None:
    source = {"url": "-https://example.com/code.zip", "sha256": "0" * 64}
    made_for = job(code={"uri": source}, envFrom=[{"secretRef": {"name": "proxy"}}])

    spec = pod(made_for, "rollouts")["spec"]

    (fetch,) = spec["initContainers"]
    assert fetch["image"] == "trainer:1"
    assert fetch["args"] == ["fetch-code", "--out", "/code", "--sha256", "0" * 64, "--", source["url"]]
    assert fetch["envFrom"] == [{"secretRef": {"name": "proxy"}}]
    assert {"name": "code", "mountPath": "/code"} in fetch["volumeMounts"]
    assert {"name": "code", "emptyDir": {}} in spec["volumes"]


def test_the_learners_pod_gets_its_gpu_and_the_others_none() -> None:
    made_for = job(
        "Apex",
        replay={"replicas": 1},
        learners={"replicas": 1, "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "8Gi"}}},
    )

    assert container(made_for, "learners")["resources"] == {"limits": {"nvidia.com/gpu": "1", "memory": "8Gi"}}
    assert env(made_for, "learners")["RLTRAIN_ROLE"] == "learners"
    for role in ("head", "rollouts", "replay"):
        assert "resources" not in container(made_for, role)


def test_resources_are_passed_on_and_an_empty_block_is_not() -> None:
    made_for = job(rollouts={"replicas": 1, "resources": {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}})

    assert container(made_for, "rollouts")["resources"] == {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}
    assert "resources" not in container(made_for, "head")


def test_users_template_is_laid_over_and_can_not_hide_the_pods_identity() -> None:
    template = {
        "metadata": {"labels": {"team": "a", "rltrain.dev/job-uid": "stolen"}, "annotations": {"x": "y"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [
                {"name": "rltrain", "env": [{"name": "HOME", "value": "/data"}]},
                {"name": "side", "image": "side:1"},
            ],
        },
    }
    made = pod(job(head={"template": template}), "head")

    assert made["metadata"]["labels"]["team"] == "a"
    assert made["metadata"]["labels"]["rltrain.dev/job-uid"] == UID
    assert made["metadata"]["annotations"] == {"x": "y"}
    assert made["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert [each["name"] for each in made["spec"]["containers"]] == ["rltrain", "side"]
    assert {"name": "HOME", "value": "/data"} in made["spec"]["containers"][0]["env"]
    assert made["spec"]["containers"][0]["args"] == ["head"]
