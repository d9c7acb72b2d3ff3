"""A manifest from a file, with all its problems at once."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rltrain.api import names
from rltrain.api.check import check
from rltrain.api.document import Documents, Mark, Node, parse, problem, unplaced
from rltrain.api.errors import InvalidInput, InvalidManifest, Problem
from rltrain.api.job import RLTrainingJob
from rltrain.api.nearest import nearest, question
from rltrain.api.overrides import apply_overrides

STDIN: Final = "-"
MAX_BYTES: Final = 1 << 20
"""etcd takes no larger objects."""


@dataclass(frozen=True)
class Loaded:
    """A job and the document that it was read from."""

    job: RLTrainingJob
    root: Node


def load_job(path: str | Path, overrides: Sequence[str] = ()) -> RLTrainingJob:
    """Read a manifest.

    Args:
        path: a YAML or JSON file, or ``-`` for stdin.
        overrides: ``path=value`` each, see `apply_overrides`.

    Raises:
        InvalidManifest: with all problems.
        InvalidInput: there is no such file, or it isn't text.
    """
    return load(path, overrides).job


def load(path: str | Path, overrides: Sequence[str] = ()) -> Loaded:
    """`load_job`, with the document for whoever needs to know where a value came from."""
    source = "<stdin>" if str(path) == STDIN else str(path)
    return load_text(_read(path), overrides, source)


def load_text(text: str, overrides: Sequence[str] = (), source: str = "manifest") -> Loaded:
    """`load` of a text; `source` is its name in messages."""
    found = parse(text)
    problems = list(found.problems)
    if found.broken:
        raise InvalidManifest(problems, source)
    root, more = apply_overrides(_wanted(found, source), overrides)
    problems += more
    job, more = check(root)
    # Of a value that can't be read nothing more needs to be said.
    told = {p.path for p in problems}
    problems += [p for p in more if p.path not in told]
    if problems or job is None:
        raise InvalidManifest(sorted(problems, key=lambda p: (p.line or 0, p.column or 0)), source)
    return Loaded(job, root)


def validate(tree: Mapping[str, Any]) -> tuple[RLTrainingJob | None, list[Problem]]:
    """The job of a manifest that is data already, such as a checkpoint's, or all that is wrong with it."""
    return check(unplaced(tree))


def _read(path: str | Path) -> str:
    if str(path) == STDIN:
        data, name = sys.stdin.buffer.read(MAX_BYTES + 1), "stdin"
    else:
        data, name = _read_file(Path(path)), str(path)
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name} is larger than {MAX_BYTES >> 20} MiB: a manifest is a few lines of YAML")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InvalidInput(f"{name} is not a text file in UTF-8: give a manifest in YAML")
    if not text.strip():
        raise InvalidInput(f"{name} is empty: give a manifest, an {names.KIND} in YAML")
    return text


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}{_similar(path)}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder: give one of its files{_manifests_in(path)}") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None


def _similar(path: Path) -> str:
    try:
        there = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""
    close = nearest(path.name, there)
    return f" ({question(str(path.with_name(close[0])))})" if close else ""


def _manifests_in(folder: Path) -> str:
    found = sorted(entry.name for entry in folder.iterdir() if entry.suffix in (".yaml", ".yml", ".json"))
    return f", such as {folder / found[0]}" if found else ""


def _wanted(found: Documents, source: str) -> Node:
    """The one document that is a job, or the only one."""
    jobs = [root for root in found.roots if isinstance(root.value, dict) and _kind(root) == names.KIND]
    if len(jobs) == 1:
        return jobs[0]
    if not found.roots:
        raise InvalidInput(f"{source} holds no document: give a manifest, an {names.KIND} in YAML")
    if len(jobs) > 1:
        places = ", ".join(str(root.mark.line) for root in jobs)
        message = f"holds {len(jobs)} {names.KIND} documents (lines {places})"
        raise InvalidManifest([_at(jobs[1].mark, message, "give each a file of its own")], source)
    if len(found.roots) > 1:
        message = f"holds {len(found.roots)} documents, none of kind {names.KIND}"
        raise InvalidManifest([_at(found.roots[0].mark, message, None)], source)
    return found.roots[0]


def _kind(root: Node) -> object:
    _, node, depth = root.find(("kind",))
    return node.value if depth == 1 else None


def _at(mark: Mark, message: str, hint: str | None) -> Problem:
    return problem((), mark, message, hint)
