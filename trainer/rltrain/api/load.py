"""Manifests from a file, with all their problems at once."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rltrain.api import names
from rltrain.api.check import check
from rltrain.api.document import Document, Node, parse, problem, unplaced
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


@dataclass(frozen=True)
class Manifests:
    """What a file holds.

    Attributes:
        source: the file's name in messages.
        jobs: its jobs, all of them valid, at least one.
        others: what to say of its other documents, which nobody here looks at.
    """

    source: str
    jobs: tuple[Loaded, ...]
    others: tuple[Problem, ...] = ()

    def only(self) -> Loaded:
        """The one job. Raises InvalidManifest where there are several."""
        if len(self.jobs) > 1:
            places = ", ".join(str(loaded.root.mark.line) for loaded in self.jobs)
            message = f"holds {len(self.jobs)} {names.KIND} documents (lines {places}), one is wanted here"
            second = problem((), self.jobs[1].root.mark, message, "give each a file of its own")
            raise InvalidManifest([second], self.source)
        return self.jobs[0]


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
    return load_all(path, overrides).only()


def load_all(path: str | Path, overrides: Sequence[str] = ()) -> Manifests:
    """`load` of a file that may hold several jobs; each override is laid over all of them."""
    source = "<stdin>" if str(path) == STDIN else str(path)
    return load_all_text(_read(path), overrides, source)


def load_text(text: str, overrides: Sequence[str] = (), source: str = "manifest") -> Loaded:
    """`load` of a text; `source` is its name in messages."""
    return load_all_text(text, overrides, source).only()


def load_all_text(text: str, overrides: Sequence[str] = (), source: str = "manifest") -> Manifests:
    """`load_all` of a text."""
    found = parse(text)
    if found.broken:
        raise InvalidManifest([*(p for document in found.whole for p in document.problems), *found.problems], source)
    if not found.whole:
        raise InvalidInput(f"{source} holds no document: give a manifest, an {names.KIND} in YAML")
    others = [document.root for document in found.whole if _is_other(document.root)]
    read = [_read_job(document, overrides) for document in found.whole if not _is_other(document.root)]
    jobs = tuple(loaded for loaded, _ in read if loaded is not None)
    problems = [p for _, wrong in read for p in wrong] + list(_namesakes(jobs))
    if not read:
        problems = [_at_kind(root, f"must be {names.KIND}, not {_kind(root)}") for root in others]
    if problems:
        # A flag's problem is the same for each job.
        raise InvalidManifest(sorted(dict.fromkeys(problems), key=lambda p: (p.line or 0, p.column or 0)), source)
    told = (_at_kind(root, f"{_kind(root)} is left to kubectl, only {names.KIND} is looked at") for root in others)
    return Manifests(source, jobs, tuple(told))


def placed(error: InvalidManifest, root: Node, source: str) -> InvalidManifest:
    """The same with the places of what only training could see: those of the fields, where the document has them."""
    found = []
    for told in error.problems:
        path = tuple(told.path.split("."))
        mark, _, depth = root.find(path)
        known = told.line is None and depth == len(path)
        found.append(problem(path, mark, told.message, told.hint) if known else told)
    return InvalidManifest(found, source)


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
    close = nearest(path.name, there, cutoff=0.75)
    return f" ({question(str(path.with_name(close[0])))})" if close else ""


def _manifests_in(folder: Path) -> str:
    found = sorted(entry.name for entry in folder.iterdir() if entry.suffix in (".yaml", ".yml", ".json"))
    return f", such as {folder / found[0]}" if found else ""


def _read_job(document: Document, overrides: Sequence[str]) -> tuple[Loaded | None, list[Problem]]:
    root, wrong = apply_overrides(document.root, overrides)
    problems = [*document.problems, *wrong]
    job, wrong = check(root)
    # Of a value that can't be read nothing more needs to be said.
    told = {p.path for p in problems}
    problems += [p for p in wrong if p.path not in told]
    return (Loaded(job, root) if job is not None and not problems else None), problems


def _is_other(root: Node) -> bool:
    """Whether a document is meant to be something else than a job: neither its kind nor its API is ours, misspelt."""
    kind, api = _kind(root), _plain(root, "apiVersion")
    if not isinstance(kind, str) or str(api).startswith(names.GROUP):
        return False
    return not nearest(kind, [names.KIND], cutoff=0.8)


def _namesakes(jobs: Sequence[Loaded]) -> Iterator[Problem]:
    """Jobs that would replace one another on a cluster."""
    seen: dict[tuple[str | None, str], Node] = {}
    for loaded in jobs:
        metadata = loaded.job.metadata
        first = seen.setdefault((metadata.namespace, metadata.name), loaded.root)
        if first is not loaded.root:
            path = ("metadata", "name")
            message = f"{metadata.name} is the job of line {first.mark.line} too"
            yield problem(path, loaded.root.find(path)[0], message, "give each a name of its own")


def _kind(root: Node) -> Any:
    return _plain(root, "kind")


def _plain(root: Node, key: str) -> Any:
    _, node, depth = root.find((key,))
    return node.plain() if depth == 1 else None


def _at_kind(root: Node, message: str) -> Problem:
    return problem(("kind",), root.find(("kind",))[0], message)
