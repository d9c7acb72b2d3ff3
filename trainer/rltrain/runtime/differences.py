"""What is different between two manifests. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "spec") -> list[str]:
    """`path: old -> new` of each value that isn't the same; lists are values."""
    return list(_differences(before, after, path))


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _differences(before.get(key), after.get(key), f"{path}.{key}")
    elif before != after:
        yield f"{path}: {json.dumps(before)} -> {json.dumps(after)}"
