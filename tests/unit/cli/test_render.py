"""`rltrain render` shows what a cluster would get, and where each value came from."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from unit.api.conftest import manifest
from unit.cli.conftest import Command

KINDS = [
    *("ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "Secret", "ConfigMap", "Service"),
    *("PersistentVolumeClaim", "Job"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(manifest("config: {lr: 1e-4}"))
    return path


def test_yaml_and_json_hold_the_same_objects(rltrain: Command, file: Path) -> None:
    as_yaml = list(YAML(typ="safe").load_all(rltrain("render", file).out))
    as_json = json.loads(rltrain("render", file, "-o", "json").out)["items"]

    assert as_yaml == as_json
    assert [item["kind"] for item in as_json] == KINDS


def test_uid_namespace_and_image_are_those_given(rltrain: Command, file: Path) -> None:
    done = rltrain("render", file, "-o", "json", "--uid", "u-1", "-n", "lab", "--image", "trainer:7")

    items = json.loads(done.out)["items"]
    assert {item["metadata"]["namespace"] for item in items} == {"lab"}
    owners = [item["metadata"]["ownerReferences"][0]["uid"] for item in items if "ownerReferences" in item["metadata"]]
    assert set(owners) == {"u-1"}
    assert items[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == "trainer:7"


def test_no_token_is_printed(rltrain: Command, file: Path) -> None:
    (secret,) = [
        item for item in json.loads(rltrain("render", file, "-o", "json").out)["items"] if item["kind"] == "Secret"
    ]
    assert secret["stringData"] == {"token": "(random, made by the operator)"}


def test_a_job_in_a_queue_has_its_workload_as_kueue_would_get_it(rltrain: Command, tmp_path: Path) -> None:
    path = tmp_path / "queued.yaml"
    path.write_text(manifest("scheduling: {queueName: team-a, priorityClassName: high}\nrollouts: {replicas: 3}"))
    done = rltrain("render", path)
    items = json.loads(rltrain("render", path, "-o", "json").out)["items"]
    assert list(YAML(typ="safe").load_all(done.out)) == items
    assert [item["kind"] for item in items] == ["Workload", *KINDS, "Job"]
    assert items[0]["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert items[0]["spec"]["queueName"] == "team-a"
    assert {each["name"]: each["count"] for each in items[0]["spec"]["podSets"]} == {"head": 1, "rollouts": 3}
    assert done.out.startswith("# a cluster with Kueue is assumed (spec.scheduling.queueName), its API in version v1b")
    assert "# the Workload's priority, that of PriorityClass high, is read from the cluster\n" in done.out


@pytest.mark.parametrize(
    ("scheduling", "option", "why"),
    [
        ("{gang: Volcano, queueName: team-a}", (), "spec.scheduling.gang"),
        ("{}", ("--volcano",), "--volcano"),
    ],
)
def test_a_gang_of_volcanos_is_shown_with_what_that_assumes(
    scheduling: str, option: tuple[str, ...], why: str, rltrain: Command, tmp_path: Path
) -> None:
    path = tmp_path / "gang.yaml"
    path.write_text(manifest(f"scheduling: {scheduling}"))
    done = rltrain("render", path, *option)
    assert done.out.startswith(f"# a cluster with Volcano is assumed ({why})\n")
    items = list(YAML(typ="safe").load_all(done.out))
    assert "PodGroup" in [item["kind"] for item in items]
    assert items[-1]["spec"]["template"]["spec"]["schedulerName"] == "volcano"


def test_a_gang_of_kubernetes_own_is_shown_with_what_that_assumes(rltrain: Command, tmp_path: Path) -> None:
    path = tmp_path / "gang.yaml"
    path.write_text(manifest("scheduling: {gang: Kubernetes}"))
    done = rltrain("render", path)
    assert done.out.startswith("# a cluster with Kubernetes' own gang scheduling is assumed (spec.scheduling.gang)")
    items = list(YAML(typ="safe").load_all(done.out))
    assert "scheduling.k8s.io/v1beta1" in [item["apiVersion"] for item in items]
    assert "schedulingGroup" in items[-1]["spec"]["template"]["spec"]
    beside = rltrain("render", path, "-o", "json")
    assert json.loads(beside.out)["items"] == items
    assert beside.err == done.out.partition("apiVersion")[0], "JSON has no place for it"


def test_nothing_is_assumed_of_a_cluster_for_a_job_that_asks_for_nothing(rltrain: Command, file: Path) -> None:
    assert not rltrain("render", file).out.startswith("#")


def test_origin_of_each_value_is_shown_with_its_place(rltrain: Command, file: Path) -> None:
    done = rltrain("render", file, "--origins", "--set", "seed=3")

    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.out.splitlines()}
    assert rows["spec.config.lr"] == f"0.0001 file {file}:8"
    assert rows["spec.seed"] == "3 flag --set seed=3"
    assert rows["spec.config.buffer_size"] == "50000 plan DQN"
    assert rows["spec.checkpoint.keep"] == "3 default"

    machine = json.loads(rltrain("render", file, "--origins", "-o", "json").out)
    assert {"path": "spec.config.lr", "value": 1e-4, "origin": "file", "place": f"{file}:8"} in machine


def test_one_job_is_wanted(rltrain: Command, file: Path) -> None:
    file.write_text(f"{manifest()}---\n{manifest().replace('cartpole', 'second')}")

    done = rltrain("render", file)

    assert (done.code, done.out) == (2, "")
    assert "holds 2 RLTrainingJob documents (lines 1, 9), one is wanted here (give each a file of its own)" in done.err


def test_bad_manifest_and_bad_template_are_refused_alike(rltrain: Command, tmp_path: Path) -> None:
    for body in ("seed: -1", "head: {template: {spec: {containers: [{image: x}]}}}"):
        (tmp_path / "bad.yaml").write_text(manifest(body))
        done = rltrain("render", tmp_path / "bad.yaml")
        assert (done.code, done.out) == (2, ""), body
        assert "spec." in done.err
