"""A manifest with every default filled in: what `manifest.yaml` and the job's ConfigMap hold."""

import io
from typing import Any

from ruamel.yaml import YAML

from rltrain.api.job import RLTrainingJob


def resolved(job: RLTrainingJob) -> dict[str, Any]:
    """As plain data, with the user's metadata only and without status."""
    metadata = job.metadata.model_dump(by_alias=True, include={"name", "namespace", "labels", "annotations"})
    spec = job.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": {"plan": spec.pop("plan"), **spec},
    }


def to_yaml(data: Any) -> str:
    """YAML in block style, keys in their order."""
    writer = YAML()
    writer.default_flow_style = False
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    writer.dump(data, stream)
    return stream.getvalue()
