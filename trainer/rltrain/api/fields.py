"""Every key that a manifest may have, as read from the models: what hints and origins are made from."""

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rltrain.api.job import PLAN_SPECS, ObjectMeta, RLTrainingJob, SpecBase

Section = tuple[str, ...]


def key_of(name: str, field: FieldInfo) -> str:
    """A field's name in the manifest."""
    return field.alias or name


def submodel(annotation: Any) -> type[BaseModel] | None:
    """The model in ``Model``, ``Model | None`` or ``Annotated[Model, …]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return next((found for option in get_args(annotation) if (found := submodel(option))), None)
    return None


@cache
def sections(plan: str | None) -> dict[Section, dict[str, FieldInfo]]:
    """Keys that users write, by section, for a plan, or those that all plans share."""
    model: type[BaseModel] = PLAN_SPECS.get(plan or "", SpecBase)
    top = RLTrainingJob.model_fields
    metadata = ObjectMeta.model_fields
    return {
        (): {key_of(name, top[name]): top[name] for name in ("api_version", "kind", "metadata", "spec")},
        ("metadata",): {name: metadata[name] for name in ("name", "namespace", "labels", "annotations")},
        **dict(_walk(model, ("spec",))),
    }


def _walk(model: type[BaseModel], path: Section) -> Iterator[tuple[Section, dict[str, FieldInfo]]]:
    fields = {key_of(name, field): field for name, field in model.model_fields.items()}
    yield path, fields
    for key, field in fields.items():
        inner = submodel(field.annotation)
        if inner is not None:
            yield from _walk(inner, (*path, key))
