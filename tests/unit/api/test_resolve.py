"""The resolved manifest says everything and reads back as the same job, whoever reads it."""

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rltrain.api.document import parse
from rltrain.api.load import load_text, validate
from rltrain.api.resolve import origins, resolved, resolved_json, resolved_yaml, to_yaml
from unit.api.conftest import manifest

_AWKWARD = st.sampled_from(
    [
        "yes",
        "no",
        "on",
        "012",
        "1_0",
        "0b1",
        "1e3",
        "~",
        "",
        "null",
        "true",
        "<<",
        "=",
        ".inf",
        "a: b",
        "- a",
        "#",
        "2020-01-01",
        "1:30",
    ]
)
_TEXT = st.one_of(
    _AWKWARD, st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=20)
)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), _FLOATS, _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=10,
)


@pytest.mark.parametrize("plan", ["DQN", "DDPPO"])
def test_resolved_manifest_reads_back_as_the_same_job(plan: str) -> None:
    job = load_text(manifest("config: {lr_schedule: [[0, 1e-3], [1000, 1e-5]]}", plan)).job

    assert load_text(resolved_yaml(job)).job == job
    assert load_text(resolved_json(job)).job == job


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=20))
@example('\x7f \x85 \u2028 \ufeff \U0001f600 \t\n \\ "')
def test_whatever_text_a_manifest_has_its_json_reads_back_as_yaml(text: str) -> None:
    plain = load_text(manifest()).job
    env = plain.spec.env.model_copy(update={"kwargs": {"mode": text}})
    job = plain.model_copy(update={"spec": plain.spec.model_copy(update={"env": env})})
    assert load_text(resolved_json(job)).job == job


@settings(max_examples=150, deadline=None)
@given(_TREES)
def test_dumped_values_read_back_as_they_were(tree: Any) -> None:
    found = parse(to_yaml({"x": tree}))

    assert found.problems == []
    assert found.whole[0].root.plain() == {"x": tree}


@given(_AWKWARD)
def test_text_that_old_parsers_take_for_something_else_is_quoted(text: str) -> None:
    assert yaml.safe_load(to_yaml({"a": text})) == {"a": text}


def test_origin_of_each_value_is_told() -> None:
    loaded = load_text(manifest("config: {lr: 1e-4}"), ["seed=3"])

    found = {".".join(map(str, path)): origin for path, _, origin in origins(loaded.job, loaded.root)}

    assert found["spec.config.lr"] == "file"
    assert found["spec.env.id"] == "file"
    assert found["spec.seed"] == "flag"
    assert found["spec.config.buffer_size"] == "plan"
    assert found["spec.checkpoint.keep"] == "default"


def test_what_occurs_twice_is_written_twice() -> None:
    same = {"a": 1}
    assert to_yaml({"x": same, "z": [same]}) == "x:\n  a: 1\nz:\n- a: 1\n"


def test_manifest_that_is_data_already_is_read_or_its_problems_are_told() -> None:
    job = load_text(manifest("config: {grad_clip: 0}")).job

    assert validate(resolved(job)) == (job, [])
    _, problems = validate({**resolved(job), "spec": {"plan": "DQM"}})
    assert [str(problem) for problem in problems][:1] == [
        "spec.plan: must be one of Apex, ApexClassic, CQL, DDPPO, DQN, OffPolicy, "
        'not the text "DQM" (did you mean DQN?)'
    ]
