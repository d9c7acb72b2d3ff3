"""Base models and strict number types of the manifest."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel


def _integral(value: Any) -> Any:
    """``1e6`` is an integer to people and to the API server, ``1.5`` and ``true`` aren't."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Int = Annotated[int, BeforeValidator(_integral)]
PositiveInt = Annotated[int, Field(ge=1), BeforeValidator(_integral)]
NonNegativeInt = Annotated[int, Field(ge=0), BeforeValidator(_integral)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]

QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"


def _quantity(value: Any) -> Any:
    """Kubernetes takes ``cpu: 2`` as well as ``cpu: "2"``, but no unquoted fraction in a custom resource."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


Quantity = Annotated[str, Field(pattern=QUANTITY_PATTERN), BeforeValidator(_quantity)]
"""A Kubernetes resource quantity: ``500m``, ``2``, ``4Gi``."""


class Model(BaseModel):
    """A frozen part of the manifest in camelCase; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class ConfigModel(BaseModel):
    """A frozen part of ``spec.config``: RLlib's snake_case keys as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
