"""`rltrain validate`: every problem of some manifests, without running anything."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rltrain.api import names
from rltrain.api.errors import InvalidInput, InvalidManifest, Problem
from rltrain.api.load import load_job
from rltrain.cli.options import Json, Overrides


def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="The manifests; - for stdin.", show_default=False)
    ],
    set_: Overrides = None,
    output: Json = None,
) -> None:
    """Check manifests and tell everything that is wrong with them."""
    failures = {file: failure for file in files if (failure := _failure(file, set_ or [])) is not None}
    if output == "json":
        typer.echo(json.dumps([_report(file, failures.get(file)) for file in files], indent=2))
    else:
        for file in files:
            typer.echo(failures.get(file, f"{file}: valid"), err=file in failures)
    raise typer.Exit(names.EXIT_INVALID if failures else names.EXIT_DONE)


def _failure(file: Path, overrides: list[str]) -> InvalidInput | None:
    try:
        load_job(file, overrides)
    except InvalidInput as error:
        return error
    return None


def _report(file: Path, failure: InvalidInput | None) -> dict[str, Any]:
    problems = failure.problems if isinstance(failure, InvalidManifest) else [Problem("", str(failure))]
    return {
        "file": str(file),
        "valid": failure is None,
        "problems": [asdict(problem) for problem in problems] if failure is not None else [],
    }
