"""Manifest files -> RLTrainingJob, or all that is wrong with them at once."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from rltrain.api import names
from rltrain.api.errors import InvalidManifest, Problem
from rltrain.api.job import RLTrainingJob
from rltrain.api.problems import guess_plan, problems_of
from rltrain.api.yaml_text import Document, Path, dotted, parse, parse_value

_MAX_BYTES: Final = 1 << 20
"""More than etcd would take; a bigger file is something else."""


def load_job(path: FilePath | str, overrides: Sequence[str] = ()) -> RLTrainingJob:
    """Read, override and validate a manifest.

    Args:
        path: a YAML or JSON file; "-" is standard input.
        overrides: `path=value` with the path below `spec` (the prefix may be left out) or `metadata`, the value YAML.

    Raises:
        InvalidManifest: every problem with its path and, where it stands in the file, line and column.
    """
    return parse_job(_read(str(path)), str(path), overrides)


def parse_job(text: str, source: str = "manifest", overrides: Sequence[str] = ()) -> RLTrainingJob:
    """As `load_job`, of a text."""
    document = _wanted(parse(text), source)
    problems = list(document.problems)
    if document.data is None and problems:
        raise InvalidManifest(problems, source)
    if not isinstance(document.data, dict):
        raise InvalidManifest([Problem("", "a manifest is a map that begins with apiVersion and kind")], source)
    flags: dict[Path, str] = {}
    for override in overrides:
        try:
            flags[_override(document.data, override)] = override
        except ValueError as error:
            problems.append(Problem(f"--set {override}", str(error)))
    job, found = validate(document.data)
    # What YAML itself makes doubtful has been told already, with the remedy.
    told = {problem.path for problem in problems}
    problems += [_placed(problem, document, flags) for problem in found if problem.path not in told]
    if job is None or problems:
        raise InvalidManifest(sorted(problems, key=lambda p: (p.line or 0, p.column or 0)), source)
    return job


def validate(data: dict[str, Any]) -> tuple[RLTrainingJob | None, list[Problem]]:
    """A manifest that is data already, such as an object from the API server: the job, or its problems."""
    spec = data.get("spec")
    plan = guess_plan(spec)
    problems: list[Problem] = []
    if isinstance(spec, dict) and spec.get("plan") != plan:
        try:
            RLTrainingJob.model_validate({**data, "spec": {"plan": spec.get("plan")}}, by_alias=True, by_name=False)
        except ValidationError as error:
            problems += [problem for problem in problems_of(error, plan) if problem.path == "spec.plan"]
        # The rest is checked as if the plan had been written right, so that all problems are told at once.
        data = {**data, "spec": {**spec, "plan": plan}}
    try:
        job = RLTrainingJob.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return None, problems + problems_of(error, plan)
    return (None if problems else job), problems


def _read(path: str) -> str:
    def refuse(message: str, hint: str) -> InvalidManifest:
        return InvalidManifest([Problem("", message, hint)], path)

    try:
        raw = sys.stdin.buffer.read(_MAX_BYTES + 1) if path == "-" else _bytes(FilePath(path))
    except FileNotFoundError:
        raise refuse("there is no such file", _neighbours(FilePath(path))) from None
    except IsADirectoryError:
        raise refuse("is a folder", "name the manifest in it") from None
    except OSError as error:
        raise refuse(f"can't be read: {error.strerror}", "check its permissions") from None
    if len(raw) > _MAX_BYTES:
        raise refuse("is larger than 1 MiB, which no manifest is", "name a YAML file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse("isn't text in UTF-8", "name a YAML file") from None
    if not text.strip():
        raise refuse("is empty", "see examples/ for manifests")
    return text


def _bytes(path: FilePath) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES + 1)


def _neighbours(path: FilePath) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    found = sorted(file.name for file in folder.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
    return f"in {folder} there are {', '.join(found[:5])}" if found else f"no manifest is in {folder}"


def _wanted(documents: list[Document], source: str) -> Document:
    if not documents:
        raise InvalidManifest([Problem("", "holds no YAML document", "see examples/ for manifests")], source)
    jobs = [d for d in documents if isinstance(d.data, dict) and d.data.get("kind") == names.KIND]
    if len(jobs) > 1:
        raise InvalidManifest(
            [Problem("", f"holds {len(jobs)} {names.KIND}s", "put each into a file of its own")], source
        )
    return jobs[0] if jobs else documents[0]


def _override(data: dict[str, Any], override: str) -> Path:
    """Put `path=value` into the data. Raises ValueError."""
    path, equals, value = override.partition("=")
    parts: Path = tuple(path.strip().split("."))
    if not equals or not all(parts):
        raise ValueError("write it as path=value, e.g. --set config.lr=1e-3")
    if parts[0] not in ("spec", "metadata"):
        parts = ("spec", *parts)
    section: Any = data
    for part in parts[:-1]:
        if section.get(part) is None:
            section[part] = {}
        section = section[part]
        if not isinstance(section, dict):
            raise ValueError(f"{part} holds a value, not keys")
    section[parts[-1]] = parse_value(value)
    return parts


def _placed(problem: Problem, document: Document, flags: dict[Path, str]) -> Problem:
    """With line and column of the field, or of the nearest section that is written down."""
    by_path = {dotted(path): path for path in [*document.places, *flags]}
    path = by_path.get(problem.path)
    while path is None or (path not in document.places and path not in flags):
        if path is None:
            parent = problem.path.rpartition(".")[0]
            while parent and parent not in by_path:
                parent = parent.rpartition(".")[0]
            path = by_path.get(parent, ())
        else:
            path = path[:-1]
    if path in flags:
        return replace(problem, path=f"--set {flags[path]}: {problem.path}")
    line, column = document.places[path]
    return replace(problem, line=line, column=column)
