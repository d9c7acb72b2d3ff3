"""The chart as Helm renders it."""

import json
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from testbed import parts
from testbed.layout import BIN

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts/rltrain"
VALUES_SETS: Final = Path(__file__).parent / "values"
SNAPSHOTS: Final = Path(__file__).parent / "snapshots"
NAMESPACE: Final = "system"
CRD: Final = "CustomResourceDefinition"
Object = dict[str, Any]


def helm(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the test cluster's Helm, whether it is up or not, whatever comes of it."""
    program = BIN / "helm" if BIN.exists() else parts.build(parts.HELM) / "helm"
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60)


def render(*args: str | Path, release: str = "rltrain", chart: Path = CHART) -> list[Object]:
    """All objects of a release."""
    done = helm("template", release, chart, "--namespace", NAMESPACE, "--kube-version", "1.36.0", *args)
    assert done.returncode == 0, done.stderr
    return [made for text in re.split(r"^---$", done.stdout, flags=re.MULTILINE) if (made := _parsed(text))]


@cache
def _parsed(text: str) -> Object | None:
    """Kept, for the definition is long and the same nearly everywhere."""
    found: Object | None = YAML(typ="safe", pure=True).load(text)
    return found


def values(**changes: Any) -> tuple[str, ...]:
    """Values as arguments of Helm."""
    return tuple(word for key, value in changes.items() for word in ("--set-json", f"{key}={json.dumps(value)}"))


def sets() -> list[str]:
    """Names of the values sets whose objects are kept in snapshots."""
    return sorted(path.stem for path in VALUES_SETS.iterdir())


def values_of(name: str) -> tuple[str | Path, ...]:
    """A values set as arguments of Helm."""
    return ("--values", VALUES_SETS / f"{name}.yaml")


def snapshot(name: str) -> str:
    """All objects of a values set, less the definition's spec, which has a file of its own."""
    return "---\n".join(_texts(render(*values_of(name))))


def _texts(objects: Iterable[Object]) -> Iterable[str]:
    yaml = YAML()
    yaml.default_flow_style = None  # the innermost maps and lists take a line each
    yaml.width = 1000
    for made in objects:
        out = StringIO()
        yaml.dump({key: part for key, part in made.items() if made["kind"] != CRD or key != "spec"}, out)
        yield out.getvalue()
