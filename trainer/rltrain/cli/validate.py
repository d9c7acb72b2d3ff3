"""`rltrain validate`: every problem of some manifests, without running anything."""

from pathlib import Path
from typing import Annotated

import typer

from rltrain.api.errors import InvalidInput, RltrainError
from rltrain.api.load import load_job


def validate(
    files: Annotated[list[Path], typer.Argument(help="The manifests.", show_default=False)],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, e.g. spec.seed=2.")
    ] = None,
) -> None:
    """Check manifests and tell everything that is wrong with them."""
    failures: list[RltrainError] = []
    for file in files:
        try:
            load_job(file, set_ or [])
            typer.echo(f"{file}: valid")
        except InvalidInput as error:
            failures.append(error)
    if failures:
        raise InvalidInput("\n".join(map(str, failures)))
