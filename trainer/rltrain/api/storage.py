"""Where checkpoints go, and where a user's own code comes from."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rltrain.api.base import Model, PositiveFloat, PositiveInt, Quantity


class Storage(Model):
    """A volume for the run directory: a claim that exists, or the size of one to make. Ignored by local runs."""

    claim: str | None = None
    """Name of an existing PersistentVolumeClaim."""
    size: Quantity | None = None
    """Size of a claim `<job>-checkpoints` to be made; it outlives the job. 10Gi when neither is given."""
    storage_class_name: str | None = None
    """Storage class of the claim to be made; the cluster's default when not given."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.claim is not None and (self.size is not None or self.storage_class_name is not None):
            raise ValueError("give either claim, or size and storageClassName, not both")
        return self


class Checkpoint(Model):
    """When and where the whole state is saved."""

    every_seconds: PositiveFloat = 60.0
    """Time between two checkpoints; one is always saved at the end."""
    keep: PositiveInt = 3
    """Newest checkpoints kept."""
    keep_best: bool = False
    """Keep the best one too: by evaluations, each of which saves one then, or without them by `episodeReturnMean`."""
    replay: bool = True
    """Save the replay buffer too; without it a resumed run starts with an empty one."""
    resume_from: str | None = None
    """A run directory or checkpoint to start from: a local path, or on a cluster a path on the volume (a job's UID)."""
    storage: Storage = Storage()
    """The volume."""


class CodeConfigMap(Model):
    """Python files as the keys of a ConfigMap."""

    name: Annotated[str, Field(examples=["my-code"])]
    """Name of the ConfigMap, in the job's namespace."""


class CodeClaim(Model):
    """A folder on a PersistentVolumeClaim."""

    name: Annotated[str, Field(examples=["my-code"])]
    """Name of the claim, in the job's namespace."""
    path: str = ""
    """Folder on the volume."""


class CodeUri(Model):
    """An archive fetched by HTTP."""

    url: Annotated[str, Field(examples=["https://example.com/code.tar.gz"])]
    """http(s) address of a .zip, .tar.gz or single .py file."""
    sha256: str | None = None
    """Expected SHA-256 of the file, in hexadecimal."""


class Code(Model):
    """A user's own modules, put on the path of every pod of the job. Exactly one source."""

    config_map: CodeConfigMap | None = None
    """A ConfigMap."""
    claim: CodeClaim | None = None
    """A claim."""
    uri: CodeUri | None = None
    """An archive."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.config_map, self.claim, self.uri)) != 1:
            raise ValueError("give exactly one of configMap, claim and uri")
        return self
