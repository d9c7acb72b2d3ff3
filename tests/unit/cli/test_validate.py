"""`rltrain validate` and `rltrain crd`."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from unit.api.conftest import manifest
from unit.cli.conftest import Command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(manifest())
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(manifest("learning_rate: 1e-4\nseed: 012\nconfig: {sgd_minibatch_size: 5, gama: 1}"))
    return path


def test_good_manifest_is_said_to_be_valid(rltrain: Command, good: Path) -> None:
    done = rltrain("validate", good)

    assert (done.code, done.out, done.err) == (0, f"{good}: valid\n", "")


def test_every_problem_stands_on_a_line_with_file_line_and_column(rltrain: Command, bad: Path) -> None:
    done = rltrain("validate", bad)

    assert done.code == 2
    lines = [line.removeprefix("rltrain: ") for line in done.err.splitlines()]
    places = ["8:3: spec.learning_rate", "9:9: spec.seed", "10:12: spec.config.sgd_minibatch_size"]
    for line, place in zip(lines, [*places, "10:35: spec.config.gama"], strict=True):
        assert line.startswith(f"{bad}:{place}: "), line


def test_good_and_bad_files_are_all_looked_at(rltrain: Command, good: Path, bad: Path, tmp_path: Path) -> None:
    done = rltrain("validate", tmp_path / "none.yaml", bad, good, tmp_path)

    assert done.code == 2
    assert f"{good}: valid" in done.out
    assert "there is no file" in done.err
    assert "is a folder" in done.err
    assert f"{bad}:8:3" in done.err


def test_every_document_is_checked_and_what_is_no_job_is_told(rltrain: Command, tmp_path: Path) -> None:
    several, second = tmp_path / "several.yaml", manifest().replace("cartpole", "second")
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\n"
    several.write_text(f"{manifest()}---\n{other}---\n{second}")
    done = rltrain("validate", several)
    assert (done.code, done.out) == (0, f"{several}: valid (2 jobs)\n")
    assert done.err == f"{several}:10:1: kind: ConfigMap is left to kubectl, only RLTrainingJob is looked at\n"

    several.write_text(f"{manifest('seed: -1')}---\n{other}---\n{second.replace('RLTrainingJob', 'RLTrainingJb')}")
    done = rltrain("validate", several)
    assert done.code == 2
    assert [line.split(": ")[0:2] for line in done.err.splitlines()] == [
        [f"{several}:8:3", "spec.seed"],
        [f"{several}:15:1", "kind"],
    ]


def test_override_is_laid_over_the_file(rltrain: Command, good: Path) -> None:
    assert rltrain("validate", good, "--set", "seed=-1").code == 2
    assert rltrain("validate", good, "--set", "seed=1", "--set", "config.lr=1e-3").code == 0


def test_every_example_is_valid(rltrain: Command) -> None:
    examples = sorted((ROOT / "examples").glob("*.yaml"))
    assert examples
    assert rltrain("validate", *examples).code == 0


def test_crd_prints_what_is_carried(rltrain: Command) -> None:
    done = rltrain("crd")

    assert done.code == 0
    assert done.out == (ROOT / "crds/rltrain.dev_rltrainingjobs.yaml").read_text()
    assert json.loads(rltrain("crd", "-o", "json").out) == YAML(typ="safe").load(done.out)


def test_machines_get_problems_as_json(rltrain: Command, good: Path, bad: Path) -> None:
    done = rltrain("validate", good, bad, "-o", "json")

    assert done.code == 2
    first, second = json.loads(done.out)
    assert first == {
        "file": str(good),
        "valid": True,
        "jobs": ["cartpole"],
        "problems": [],
        "warnings": [],
        "others": [],
    }
    assert second["valid"] is False
    problem = second["problems"][0]
    assert (problem["path"], problem["line"], problem["column"]) == ("spec.learning_rate", 8, 3)
    assert "spec.config.lr" in problem["hint"]


def test_what_is_hardly_meant_is_warned_of(rltrain: Command, good: Path) -> None:
    done = rltrain("validate", good, "--set", "stop.envSteps=500")
    assert done.code == 0
    assert "warning: cartpole: nothing will be learnt: the first update is made after 1,000 steps" in done.err
