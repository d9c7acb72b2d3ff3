"""The resolved manifest as YAML."""

import io

from ruamel.yaml import YAML

from rltrain.api.job import RLTrainingJob


def to_yaml(job: RLTrainingJob) -> str:
    """Every field, defaults included, so that the run can be done again as it was."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = io.StringIO()
    yaml.dump(job.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"}), stream)
    return stream.getvalue()
