"""Nulls that mean something here and nothing on a cluster: `kubectl apply` drops every null of a manifest."""

from collections.abc import Iterator
from typing import Final

from rltrain.api.document import Mark, Node, Path, problem
from rltrain.api.errors import Problem
from rltrain.api.fields import sections

_DROPPED: Final = "null is dropped by kubectl apply, so it can't mean anything"


def null_problems(root: Node, variant: str | None) -> list[Problem]:
    """Nulls in free-form objects, and in place of a default that isn't null."""
    found = []
    known = sections(variant)
    for path, mark in _nulls(root, (), root.mark):
        section = tuple(step for step in path[:-1] if isinstance(step, str))
        field = known.get(section, {}).get(str(path[-1])) if path else None
        if path == ("spec", "config", "grad_clip"):
            found.append(problem(path, mark, _DROPPED, "write 0 for no clipping"))
        elif field is None and section not in known and isinstance(path[-1], str):
            found.append(problem(path, mark, _DROPPED, "leave it out"))
    return found


def _nulls(node: Node, path: Path, mark: Mark) -> Iterator[tuple[Path, Mark]]:
    if isinstance(node.value, dict):
        for key, entry in node.value.items():
            yield from _nulls(entry.node, (*path, key), entry.mark)
    elif isinstance(node.value, list):
        for index, item in enumerate(node.value):
            yield from _nulls(item, (*path, index), item.mark)
    elif node.value is None and path:
        yield path, mark
