"""Manifests for the cluster tests: the examples, with what a test changes."""

from typing import Any

from ruamel.yaml import YAML

from e2e.kube import ROOT, Object

_PROGRESS_AT_ONCE = {
    "spec": {"containers": [{"name": "rltrain", "env": [{"name": "RLTRAIN_PROGRESS_SECONDS", "value": "1"}]}]}
}


def example(file: str, name: str, **changes: Any) -> Object:
    """An example manifest under another name, whose driver reports its progress each second.

    Args:
        file: name in examples/, without its ending.
        name: the job's name.
        changes: dotted paths below `spec` with `__` for the dots, and the values to put there.
    """
    manifest = plain_example(file)
    manifest["metadata"] = {"name": name}
    for path, value in ({"head__template": _PROGRESS_AT_ONCE} | changes).items():
        *parents, last = path.split("__")
        section = manifest["spec"]
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = value
    return manifest


def plain_example(file: str) -> Object:
    """An example manifest as it is."""
    manifest: Object = YAML(typ="safe").load((ROOT / f"examples/{file}.yaml").read_text())
    return manifest
