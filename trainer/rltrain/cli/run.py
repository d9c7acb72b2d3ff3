"""`rltrain run`: train on this machine."""

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltrain.api.errors import MissingExtra


def run(
    file: Annotated[Path, typer.Argument(help="The manifest.", show_default=False)],
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
    from rltrain.runtime.interrupts import Interrupts

    with Interrupts() as interrupts:
        from rltrain.api.load import load_job
        from rltrain.runtime.session import prepare_environment

        job = load_job(file, set_ or [])
        prepare_environment()
        try:
            from rltrain.runtime.local import run_locally
        except ModuleNotFoundError as error:
            raise missing_extra(error) from error
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
        directory = out or Path("runs") / job.metadata.name
        outcome = run_locally(job, directory, resume=resume, serial=serial, interrupts=interrupts)
    if json_:
        typer.echo(json.dumps(outcome.to_json()))
    sys.stdout.flush()
    raise typer.Exit(outcome.exit_code)


def missing_extra(error: ModuleNotFoundError) -> MissingExtra:
    """What to install when a part of the trainer isn't there."""
    return MissingExtra(f"training needs {error.name}, which isn't installed: pip install 'rltrain[trainer]'")
