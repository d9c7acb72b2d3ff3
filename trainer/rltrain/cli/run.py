"""`rltrain run`: train on this machine."""

import json
import logging
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltrain import user_code
from rltrain.api.errors import InvalidManifest, MissingExtra, RltrainError, TrainingFailed
from rltrain.api.load import STDIN, load, placed
from rltrain.cli.output import last_line, lasting_output
from rltrain.runtime.interrupts import Interrupts

if TYPE_CHECKING:
    from rltrain.runtime.outcome_so_far import OutcomeSoFar
    from rltrain.runtime.result import RunResult


def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The manifest, or - for stdin.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Run directory; runs/<name> by default.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, e.g. spec.seed=2.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint.")] = False,
    serial: Annotated[
        bool, typer.Option("--serial", help="Everything in this process, the same every time; for debugging.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="End with the outcome as one JSON object on stdout.")] = False,
) -> None:
    """Train an agent on this machine until a stop criterion is reached."""
    from rltrain.runtime.outcome_so_far import OutcomeSoFar

    so_far = OutcomeSoFar()
    with lasting_output() as printed, nullcontext(context.obj) if context.obj else Interrupts() as interrupts:
        if json_:
            interrupts.on_leaving.append(lambda: os.write(1, f"{_json(so_far.interrupted())}\n".encode()))
        try:
            outcome = _train(file, out, set_ or [], resume, serial, interrupts, so_far)
        except Exception as error:
            if json_:
                told = error if isinstance(error, RltrainError) else TrainingFailed(f"{type(error).__name__}: {error}")
                last_line(printed, _json(so_far.failed(told)))
            raise
        if outcome.state == "Failed":
            typer.echo(f"rltrain: {outcome.message}", err=True)
        if json_:
            last_line(printed, _json(outcome))
    raise typer.Exit(outcome.exit_code)


def _train(
    file: Path,
    out: Path | None,
    overrides: list[str],
    resume: bool,
    serial: bool,
    interrupts: Interrupts,
    so_far: "OutcomeSoFar",
) -> "RunResult":
    from rltrain.runtime.session import prepare_environment

    loaded = load(file, overrides)
    job = loaded.job
    prepare_environment()
    user_code.reach(Path(), *([] if str(file) == STDIN else [file.parent]))
    try:
        from rltrain.runtime.local import run_locally
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    directory = out or Path("runs") / job.metadata.name
    try:
        outcome = run_locally(job, directory, resume=resume, serial=serial, interrupts=interrupts, watchers=[so_far])
    except InvalidManifest as error:
        raise placed(error, loaded.root, str(file)) from error
    if outcome.state == "Succeeded" and sys.stderr.isatty():
        typer.echo(f"next: rltrain evaluate {directory}", err=True)
    return outcome


def _json(outcome: "RunResult") -> str:
    return json.dumps(outcome.to_json())


def missing_extra(error: ModuleNotFoundError) -> MissingExtra:
    """What to install when a part of the trainer isn't there."""
    return MissingExtra(f"training needs {error.name}, which isn't installed: pip install 'rltrain[trainer]'")
