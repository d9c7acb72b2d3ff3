"""Objects of the user's that a job refers to by name."""

from typing import Annotated

from pydantic import Field

from rltrain.api.base import Model


class LocalObjectReference(Model):
    """Name of an object in the job's namespace."""

    name: Annotated[str, Field(examples=["my-secret"])]


class EnvFromSource(Model):
    """A ConfigMap or Secret whose keys become environment variables."""

    prefix: str | None = None
    """Put before each key."""
    config_map_ref: LocalObjectReference | None = None
    """The ConfigMap."""
    secret_ref: LocalObjectReference | None = None
    """The Secret."""
