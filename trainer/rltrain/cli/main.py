"""The `rltrain` command: one file a subcommand, failures as sentences with an exit code."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import click
import typer

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.cli.crd import crd
from rltrain.cli.fetch_code import fetch_code
from rltrain.cli.head import head
from rltrain.cli.node import node
from rltrain.cli.run import run
from rltrain.cli.validate import validate

app = typer.Typer(
    help="Reinforcement-learning training from one manifest: here, or on Kubernetes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (run, validate, crd):
    app.command()(command)
for internal in (head, node, fetch_code):
    app.command(hidden=True)(internal)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rltrain {version('rltrain')}")
        raise typer.Exit


@app.callback()
def _options(
    version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks (or set RLTRAIN_DEBUG=1).")] = False,
) -> None:
    if debug:
        os.environ["RLTRAIN_DEBUG"] = "1"


def main() -> None:
    """Entry point: every failure ends as a sentence on stderr and its exit code."""
    try:
        code = app(standalone_mode=False)
    except RltrainError as error:
        print(f"rltrain: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(names.EXIT_INTERRUPTED)
    except click.ClickException as error:
        print(f"rltrain: {error.format_message()}", file=sys.stderr)
        sys.exit(names.EXIT_INVALID)
    except KeyboardInterrupt:
        sys.exit(names.EXIT_INTERRUPTED)
    except Exception as error:
        if os.environ.get("RLTRAIN_DEBUG") == "1":
            raise
        print(
            f"rltrain: unexpected {type(error).__name__}: {error} (RLTRAIN_DEBUG=1 shows the traceback)",
            file=sys.stderr,
        )
        sys.exit(names.EXIT_FAILED)
    sys.exit(code if isinstance(code, int) else names.EXIT_DONE)
