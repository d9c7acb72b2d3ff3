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
