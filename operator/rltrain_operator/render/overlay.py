"""A user's pod template laid over the rendered one, as a strategic merge would."""

from collections.abc import Iterator
from typing import Any

from rltrain.api.errors import Problem
from rltrain_operator.render.context import Object

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
}
"""Lists whose items have an identity; any other list replaces the rendered one."""

_WHOLE = frozenset({"volumes", "env", "volumeMounts"})
"""Items that are unions (`value` or `valueFrom`, `emptyDir` or `hostPath`): merging two of them makes nonsense."""

_OURS = {
    "restartPolicy": "the roles of the job rest on it",
    "hostname": "the pods of a job find each other by it",
    "subdomain": "the pods of a job find each other by it",
}


def overlay(base: Object, patch: Object) -> Object:
    """``base`` with ``patch`` laid over it: maps merge, named items merge by name, null removes."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif key in _MERGE_KEYS and isinstance(value, list):
            merged[key] = _merge_items(key, merged.get(key, []), value)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = overlay(merged[key], value)
        else:
            merged[key] = value
    return merged


def _merge_items(key: str, base: list[Object], patch: list[Object]) -> list[Object]:
    identity = _MERGE_KEYS[key]
    items = {item[identity]: item for item in base}
    for item in patch:
        name = item[identity]
        items[name] = overlay(items[name], item) if name in items and key not in _WHOLE else item
    return list(items.values())


def template_problems(template: Object, path: str) -> list[Problem]:
    """What the merge can't make sense of; everything else is the API server's to judge."""
    problems = [
        Problem(f"{path}.{key}", "unknown key, a pod template has metadata and spec")
        for key in template
        if key not in ("metadata", "spec")
    ]
    for key in ("metadata", "spec"):
        if not isinstance(template.get(key, {}), dict):
            problems.append(Problem(f"{path}.{key}", "must be an object"))
            return problems
    spec = template.get("spec", {})
    problems += [
        Problem(f"{path}.spec.{key}", f"can't be set here, {why}") for key, why in _OURS.items() if key in spec
    ]
    problems += _item_problems(spec, f"{path}.spec")
    return problems


def _item_problems(value: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        return
    for key, items in value.items():
        identity = _MERGE_KEYS.get(key)
        if identity is None or items is None:
            continue
        if not isinstance(items, list):
            yield Problem(f"{path}.{key}", "must be a list")
            continue
        for index, item in enumerate(items):
            here = f"{path}.{key}[{index}]"
            if not isinstance(item, dict) or not isinstance(item.get(identity), str):
                yield Problem(here, f"must be an object with a {identity}, items are merged by it")
            else:
                yield from _item_problems(item, here)
