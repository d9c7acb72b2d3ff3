"""The `rltrain` command: one file a subcommand, failures as sentences with an exit code."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Final

import typer

from rltrain.api import names
from rltrain.api.errors import InvalidManifest, RltrainError
from rltrain.cli.lazy import Command, LazyGroup
from rltrain.cli.usage import usage_message
from rltrain.runtime.interrupts import Interrupts

_USAGE: Final = "Usage"


class _Commands(LazyGroup):
    table = {
        "run": Command("run", "run", "Train an agent on this machine."),
        "evaluate": Command("evaluate", "evaluate", "Play episodes with a trained agent."),
        "collect": Command("collect", "collect", "Record a dataset to learn from offline."),
        "validate": Command("validate", "validate", "Check manifests and tell everything that is wrong with them."),
        "render": Command("render", "render", "Print what the operator would apply for a manifest."),
        "submit": Command("submit", "submit", "Apply a manifest to a cluster."),
        "status": Command("status", "status", "Show the jobs of a cluster, or one in detail."),
        "logs": Command("logs", "logs", "Print the logs of a job's pods."),
        "fetch": Command("fetch", "fetch", "Copy a job's run and newest checkpoint from its volume."),
        "delete": Command("delete", "delete", "Delete a job; its volume stays unless told otherwise."),
        "crd": Command("crd", "crd", "Print the CustomResourceDefinition."),
        "head": Command("head", "head", "Run a job's head pod.", hidden=True),
        "node": Command("node", "node", "Run any other pod of a job.", hidden=True),
        "fetch-code": Command("fetch_code", "fetch_code", "Fetch a job's code into its pod.", hidden=True),
    }


app = typer.Typer(
    cls=_Commands,
    help="Reinforcement-learning training from one manifest: here, or on Kubernetes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rltrain {version('rltrain')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks (or set {names.DEBUG}=1).")] = False,
) -> None:
    if debug:
        os.environ[names.DEBUG] = "1"
    if context.obj is not None and context.invoked_subcommand != "run":
        context.obj.leave_to_python()


def main(interrupts: Interrupts | None = None) -> None:
    """Every failure ends as a sentence on stderr and its exit code.

    Args:
        interrupts: what has been asked for since the process began.
    """
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        # Those who need it have just seen a command fail, and add it at the end.
        arguments.remove("--debug")
        arguments.insert(0, "--debug")
    sys.exit(_run(arguments, interrupts))


def _run(arguments: list[str], interrupts: Interrupts | None = None) -> int:
    try:
        code = app(arguments, prog_name="rltrain", standalone_mode=False, obj=interrupts)
    except RltrainError as error:
        # A manifest's problems begin with its file and line, as editors and CI expect them.
        told = str(error) if isinstance(error, InvalidManifest) else f"rltrain: {error}"
        return _fail(told, error.exit_code, error.reason, arguments)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("rltrain: interrupted", names.EXIT_INTERRUPTED, "Interrupted", arguments)
    except typer.TyperException as error:
        return _fail(usage_message(error), names.EXIT_INVALID, _USAGE, arguments)
    except Exception as error:
        if os.environ.get(names.DEBUG) == "1":
            raise
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        told = f"rltrain: unexpected {what} (add --debug to see the traceback)"
        return _fail(told, names.EXIT_FAILED, type(error).__name__, arguments)
    return code if isinstance(code, int) else names.EXIT_DONE


def _fail(message: str, code: int, reason: str, arguments: Sequence[str]) -> int:
    """Tell of a failure; machines are told by JSON where the command hasn't done so itself."""
    with suppress(OSError):  # nobody may be there to read it
        print(message, file=sys.stderr)
    if _wants_json(arguments) and (reason == _USAGE or "evaluate" in arguments):
        plain = message.removeprefix("rltrain: ")
        with suppress(OSError):
            print(json.dumps({"state": "Failed", "reason": reason, "exit_code": code, "message": plain}), flush=True)
    return code


def _wants_json(arguments: Sequence[str]) -> bool:
    pairs = [*pairwise(arguments), *(tuple(argument.split("=", 1)) for argument in arguments)]
    return "--json" in arguments or "-ojson" in arguments or bool({("-o", "json"), ("--output", "json")} & set(pairs))
