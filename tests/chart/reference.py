"""What each value is, said once: in the schema. The comments in values.yaml and the chart's table come from there."""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from ruamel.yaml import YAML

from chart.rendering import CHART

SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text())
VALUES: Final[dict[str, Any]] = YAML(typ="safe").load((CHART / "values.yaml").read_text())
_TABLE = re.compile(r"(?<=<!-- values -->\n).*?(?=<!-- end of values -->)", re.DOTALL)
_WIDTH = 110


def described(schema: dict[str, Any] = SCHEMA, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key of the schema with its own part of it."""
    for key, part in schema.get("properties", {}).items():
        yield f"{path}{key}", part
        yield from described(part, f"{path}{key}.")


def given(values: dict[str, Any] = VALUES, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each key of the values with its default; a map that is free in the schema ends the path."""
    parts = dict(described())
    for key, value in values.items():
        yield f"{path}{key}", value
        if isinstance(value, dict) and "properties" in parts[f"{path}{key}"]:
            yield from given(value, f"{path}{key}.")


def commented(text: str) -> str:
    """values.yaml with each key's description above it, in place of what stands there."""
    words = {path: part["description"] for path, part in described()}
    lines: list[str] = []
    above: list[str] = []
    for line in text.splitlines():
        key = re.match(r"( *)([\w.]+):", line)
        depth = len(key[1]) // 2 if key else 0
        path = ".".join([*above[:depth], key[2]]) if key else ""
        if path in words:
            above = path.split(".")
            indent = "  " * depth
            lines += textwrap.wrap(words[path], _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
        if not line.lstrip().startswith("#"):
            lines.append(line)
    return "\n".join(lines) + "\n"


def with_table(readme: str) -> str:
    """The chart's README with the table of all values that can be set."""
    parts = dict(described())
    rows = [
        f"| `{path}` | `{json.dumps(value)}` | {parts[path]['description']} |"
        for path, value in given()
        if "properties" not in parts[path]
    ]
    table = "\n".join(["| value | default | what it is |", "|---|---|---|", *rows])
    return _TABLE.sub(lambda _: f"{table}\n", readme)
