"""A definition that is older than the operator is noticed, with what it lacks."""

import copy

from rltrain_operator.runtime.schema import missing_fields, own_schema


def test_own_schema_lacks_nothing() -> None:
    assert list(missing_fields(own_schema(), own_schema())) == []


def test_missing_fields_are_named_by_their_path() -> None:
    older = copy.deepcopy(own_schema())
    del older["properties"]["spec"]["properties"]["stop"]["properties"]["timeSeconds"]
    del older["properties"]["status"]["properties"]["conditions"]["items"]["properties"]["reason"]
    del older["properties"]["spec"]["properties"]["checkpoint"]

    assert set(missing_fields(own_schema(), older)) == {
        "spec.stop.timeSeconds",
        "status.conditions[].reason",
        "spec.checkpoint",
    }


def test_definition_that_is_newer_is_no_trouble() -> None:
    newer = copy.deepcopy(own_schema())
    newer["properties"]["spec"]["properties"]["suspend"] = {"type": "boolean"}

    assert list(missing_fields(own_schema(), newer)) == []
