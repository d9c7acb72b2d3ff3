"""The CRD is what the models say, small, structural, and the same everywhere it is carried."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from rltrain.api.crd import crd
from rltrain.api.fields import variants
from rltrain.api.resolve import to_yaml

ROOT = Path(__file__).parents[3]
SCHEMA: dict[str, Any] = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SPEC: dict[str, Any] = SCHEMA["properties"]["spec"]


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from schemas(schema[name], f"{path}[]")


@pytest.mark.parametrize("path", ["crds/rltrain.dev_rltrainingjobs.yaml", "charts/rltrain/files/crd.yaml"])
def test_file_carries_exactly_what_the_models_say(path: str) -> None:
    assert (ROOT / path).read_text() == to_yaml(crd()), "run: make crd"


def test_crd_is_small_enough_for_plain_kubectl_apply() -> None:
    assert len(json.dumps(crd(), separators=(",", ":"))) <= 65_536


def test_crd_is_a_valid_object() -> None:
    kubernetes_validate.validate(crd(), "1.36", strict=True)


def test_schema_is_structural() -> None:
    for path, schema in schemas(SCHEMA):
        typed = "type" in schema or "x-kubernetes-int-or-string" in schema
        assert typed or "x-kubernetes-preserve-unknown-fields" in schema, path
        forbidden = {"$ref", "$defs", "anyOf", "oneOf", "const", "discriminator", "title", "prefixItems"}
        assert not forbidden & schema.keys(), path
        assert schema.get("additionalProperties") is not False, path
        assert not isinstance(schema.get("exclusiveMinimum", False), float), path
        assert isinstance(schema.get("default", {}), dict) == (
            schema.get("type") == "object" or "default" not in schema
        )


def test_config_has_the_keys_of_every_plan_and_no_default_of_any() -> None:
    keys = {field.alias or name for v in variants().values() for name, field in v.config.model_fields.items()}

    assert set(SPEC["properties"]["config"]["properties"]) == keys
    assert not [path for path, schema in schemas(SPEC["properties"]["config"]) if "default" in schema]


def test_defaults_are_those_of_the_models_where_all_plans_agree() -> None:
    assert SPEC["properties"]["checkpoint"]["default"] == {}
    assert SPEC["properties"]["checkpoint"]["properties"]["keep"]["default"] == 3
    assert SPEC["properties"]["seed"]["default"] == 0
    assert "default" not in SPEC["properties"]["rollouts"]


def test_bounds_are_those_of_the_models() -> None:
    config = SPEC["properties"]["config"]["properties"]
    assert config["lr"] == {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "description": "Adam's learning rate.",
    }
    assert (config["gamma"]["minimum"], config["gamma"]["maximum"]) == (0, 1)
    assert config["training_intensity"]["nullable"] is True
    assert config["lr_schedule"]["items"] == {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"type": "number"},
    }
    assert SPEC["properties"]["workers"]["properties"]["collective"]["properties"]["backend"]["enum"] == [
        "Gloo",
        "NCCL",
    ]


def test_free_form_objects_keep_what_they_hold() -> None:
    for schema in (
        SPEC["properties"]["env"]["properties"]["kwargs"],
        SPEC["properties"]["head"]["properties"]["template"],
    ):
        assert schema["x-kubernetes-preserve-unknown-fields"] is True


def test_conditions_and_roles_are_lists_by_name() -> None:
    status = SCHEMA["properties"]["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["roles"]["x-kubernetes-list-map-keys"] == ["name"]


def test_scale_subresource_reads_fields_that_there_are() -> None:
    version = crd()["spec"]["versions"][0]
    for path in version["subresources"]["scale"].values():
        schema = SCHEMA
        for name in path.strip(".").split("."):
            schema = schema["properties"][name]
        assert schema["type"] == ("string" if path.endswith("selector") else "integer")


def test_columns_tell_the_story() -> None:
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Plan", "State", "Steps", "Return", "Ready", "Age"]
    names = crd()["spec"]["names"]
    assert names["shortNames"] == ["rltj"]
    assert "categories" not in names
