"""`rltrain validate`: every problem of some manifests, without running anything."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rltrain.api import names
from rltrain.api.doubts import doubts
from rltrain.api.errors import InvalidInput, InvalidManifest, Problem
from rltrain.api.load import Manifests, load_all
from rltrain.cli.options import Json, Overrides


def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="The manifests; - for stdin.", show_default=False)
    ],
    set_: Overrides = None,
    output: Json = None,
) -> None:
    """Check all jobs of some manifests and tell everything that is wrong with them, or hardly meant."""
    looked = [(file, _look(file, set_ or [])) for file in files]
    if output == "json":
        typer.echo(json.dumps([_report(file, found) for file, found in looked], indent=2))
    else:
        for _, found in looked:
            _tell(found)
    failed = any(isinstance(found, InvalidInput) for _, found in looked)
    raise typer.Exit(names.EXIT_INVALID if failed else names.EXIT_DONE)


def _look(file: Path, overrides: list[str]) -> Manifests | InvalidInput:
    try:
        return load_all(file, overrides)
    except InvalidInput as error:
        return error


def _tell(found: Manifests | InvalidInput) -> None:
    if isinstance(found, InvalidInput):
        typer.echo(str(found) if isinstance(found, InvalidManifest) else f"rltrain: {found}", err=True)
        return
    for other in found.others:
        typer.echo(f"{found.source}:{other}", err=True)
    for warning in _warnings(found):
        typer.echo(f"{found.source}: warning: {warning}", err=True)
    several = f" ({len(found.jobs)} jobs)" if len(found.jobs) > 1 else ""
    typer.echo(f"{found.source}: valid{several}")


def _report(file: Path, found: Manifests | InvalidInput) -> dict[str, Any]:
    report: dict[str, Any] = {
        "file": str(file),
        "valid": True,
        "jobs": [],
        "problems": [],
        "warnings": [],
        "others": [],
    }
    if isinstance(found, Manifests):
        jobs = [loaded.job.metadata.name for loaded in found.jobs]
        return {
            **report,
            "jobs": jobs,
            "warnings": _warnings(found),
            "others": [asdict(other) for other in found.others],
        }
    problems = found.problems if isinstance(found, InvalidManifest) else (Problem("", str(found)),)
    return {**report, "valid": False, "problems": [asdict(problem) for problem in problems]}


def _warnings(found: Manifests) -> list[str]:
    return [f"{loaded.job.metadata.name}: {doubt}" for loaded in found.jobs for doubt in doubts(loaded.job)]
