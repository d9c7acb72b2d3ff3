"""`kubectl apply` drops nulls, so none may mean anything."""

from collections.abc import Callable

import pytest

from rltrain.api.errors import Problem
from rltrain.api.fields import sections, variants
from rltrain.api.load import load_text
from rltrain.api.resolve import resolved_yaml
from unit.api.conftest import manifest

Problems = Callable[..., list[Problem]]


@pytest.mark.parametrize(
    ("flag", "path"),
    [
        ("env.kwargs={a: {b: null}}", "spec.env.kwargs.a.b"),
        ("head.template={spec: {hostIPC: ~}}", "spec.head.template.spec.hostIPC"),
        ("config.grad_clip=null", "spec.config.grad_clip"),
        ("head.resources.limits.cpu=null", "spec.head.resources.limits.cpu"),
    ],
)
def test_null_with_a_meaning_is_refused(problems: Problems, flag: str, path: str) -> None:
    (found,) = problems(manifest(), flag)
    assert found.path == path
    assert "kubectl apply" in found.message


@pytest.mark.parametrize("flag", ["config.lr_schedule=null", "image=null", "config=null", "stop.timeSeconds=null"])
def test_null_that_says_the_default_again_is_taken(flag: str) -> None:
    assert load_text(manifest(), [flag]).job == load_text(manifest()).job


def test_null_in_an_item_of_a_list_that_says_the_default_again_is_taken() -> None:
    plain = load_text(manifest("envFrom: [{secretRef: {name: a}}]")).job

    assert load_text(manifest("envFrom: [{prefix: null, secretRef: {name: a}}]")).job == plain
    assert load_text(resolved_yaml(plain)).job == plain


@pytest.mark.parametrize("variant", variants())
def test_no_other_field_has_a_null_that_differs_from_its_default(variant: str) -> None:
    for section, fields in sections(variant).items():
        for key, field in fields.items():
            takes_null = type(None) in getattr(field.annotation, "__args__", ())
            assert not takes_null or field.default is None or key == "grad_clip", (section, key)


def test_no_clipping_is_written_as_0_and_reads_back() -> None:
    job = load_text(manifest(), ["config.grad_clip=0"]).job

    assert job.spec.config.grad_clip is None
    assert "grad_clip: 0.0" in resolved_yaml(job)
    assert load_text(resolved_yaml(job)).job == job
