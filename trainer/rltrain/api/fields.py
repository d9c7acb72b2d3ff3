"""Every key that a manifest may have, as read from the models: what hints and origins are made from."""

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rltrain.api.config import PlanConfig
from rltrain.api.job import PLAN_SPECS, ObjectMeta, RLTrainingJob, SpecBase

Section = tuple[str, ...]
_CONFIG = ("spec", "config")


def key_of(name: str, field: FieldInfo) -> str:
    """A field's name in the manifest."""
    return field.alias or name


class Variant(NamedTuple):
    """What decides which keys a manifest has: its plan and, where that leaves it open, its algorithm."""

    plan: str
    policy: str | None
    config: type[PlanConfig]

    @property
    def name(self) -> str:
        """As messages call it; also its key in `variants`."""
        return self.plan if self.policy is None else f"{self.plan} with policy {self.policy}"


@cache
def variants() -> dict[str, Variant]:
    """All of them by name."""
    return {found.name: found for plan in PLAN_SPECS for found in variants_of(plan)}


@cache
def variants_of(plan: str) -> tuple[Variant, ...]:
    """A plan's variants: several where its config is a union told apart by `policy`."""
    found = []
    for config in _submodels(PLAN_SPECS[plan].model_fields["config"].annotation):
        assert issubclass(config, PlanConfig)
        policy = config.model_fields.get("policy")
        found.append(Variant(plan, None if policy is None else get_args(policy.annotation)[0], config))
    return tuple(found)


def policies_of(plan: str | None) -> tuple[str, ...]:
    """Values that a plan's `policy` may have; none where the plan is the algorithm."""
    return tuple(v.policy for v in variants_of(plan) if v.policy is not None) if plan in PLAN_SPECS else ()


@cache
def sections(variant: str | None) -> dict[Section, dict[str, FieldInfo]]:
    """Keys that users write, by section.

    Args:
        variant: a name in `variants`; a plan's alone where its algorithm isn't known; None for what all plans share.
    """
    known = variants().get(variant or "")
    model: type[BaseModel] = PLAN_SPECS.get(known.plan if known else variant or "", SpecBase)
    top = RLTrainingJob.model_fields
    metadata = ObjectMeta.model_fields
    found = {
        (): {key_of(name, top[name]): top[name] for name in ("api_version", "kind", "metadata", "spec")},
        ("metadata",): {name: metadata[name] for name in ("name", "namespace", "labels", "annotations")},
        **dict(_walk(model, ("spec",))),
    }
    return {**found, **dict(_walk(known.config, _CONFIG))} if known else found


def example(field: FieldInfo) -> str:
    """A value of a required field as YAML: its own example, its only value, or its required keys with theirs."""
    if field.examples:
        return str(field.examples[0])
    if inner := _submodels(field.annotation):
        required = {key_of(name, below): below for name, below in inner[0].model_fields.items() if below.is_required()}
        return f"{{{', '.join(f'{key}: {example(below)}' for key, below in required.items())}}}"
    return str(get_args(field.annotation)[0])


def _walk(model: type[BaseModel], path: Section) -> Iterator[tuple[Section, dict[str, FieldInfo]]]:
    fields = {key_of(name, field): field for name, field in model.model_fields.items()}
    yield path, fields
    for key, field in fields.items():
        for inner in _submodels(field.annotation)[:1]:
            yield from _walk(inner, (*path, key))


def _submodels(annotation: Any) -> list[type[BaseModel]]:
    """The models in ``Model``, ``Model | None``, ``One | Other``, ``Annotated[Model, …]`` or ``list[Model]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, list):
        return [model for option in get_args(annotation) for model in _submodels(option)]
    return []
