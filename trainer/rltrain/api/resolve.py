"""The manifest as resolved: every default written out, and where each value came from."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import yaml

from rltrain.api import scalars
from rltrain.api.document import Node, Path
from rltrain.api.job import RLTrainingJob

Origin = Literal["file", "flag", "plan", "default"]


def resolved(job: RLTrainingJob) -> dict[str, Any]:
    """The job without its status, as the tree of a manifest. Null isn't the same as not given, so it is kept."""
    metadata = job.metadata.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    kept = ("name", "namespace", "uid", "labels", "annotations")
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": job.spec.model_dump(mode="json", by_alias=True),
    }


def resolved_yaml(job: RLTrainingJob) -> str:
    """`resolved` as YAML."""
    return to_yaml(resolved(job))


_UNSURE = re.compile("[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What JSON takes as it is and YAML doesn't, or folds to a space."""


def resolved_json(job: RLTrainingJob) -> str:
    """`resolved` as JSON that is YAML too: it takes a tenth of the time, which the operator has for few jobs."""
    text = json.dumps(resolved(job), ensure_ascii=False, allow_nan=False)
    return _UNSURE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def origins(job: RLTrainingJob, root: Node) -> Iterator[tuple[Path, Any, Origin]]:
    """Path, value and origin of each value below ``spec``; ``plan`` is a default that the plan sets."""
    yield from _origins(resolved(job)["spec"], ("spec",), root)


def _origins(value: Any, path: Path, root: Node) -> Iterator[tuple[Path, Any, Origin]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _origins(inner, (*path, key), root)
        return
    _, node, depth = root.find(path)
    if depth == len(path):
        yield path, value, "flag" if node.mark.flag is not None else "file"
    else:
        yield path, value, "plan" if path[:2] == ("spec", "config") else "default"


_OLD_FORMS = re.compile(r"=|[-+]?[0-9][0-9:_.TtZ +-]*")
"""Values, dates and base-60 numbers to some YAML 1.1 parsers."""


class _Dumper(yaml.CSafeDumper):
    """Quotes all text that some reader would take for something else, and writes out what occurs twice.

    libyaml writes: in Python it takes longer than all else that the operator does for a job.
    """

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    try:
        plain = scalars.resolve(text) == text and not _OLD_FORMS.fullmatch(text)
    except scalars.Ambiguous:
        plain = False
    style = "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(tree: object) -> str:
    """YAML that 1.1 and 1.2 parsers read alike."""
    written: str = yaml.dump(
        tree, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=110
    )
    return written
