"""Options that several subcommands share."""

import re
from typing import Annotated, Final, Literal

import typer

from rltrain.api.errors import InvalidInput

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def complete_job(incomplete: str) -> list[str]:
    """Names of the jobs in the present context's namespace, for the shell; none where they can't be had."""
    from rltrain.api import names
    from rltrain.cli.cluster import connect

    try:
        found = connect().select(names.PLURAL)["items"]
    except Exception:
        # A shell that is completing has no place for an error.
        return []
    return [job["metadata"]["name"] for job in found if job["metadata"]["name"].startswith(incomplete)]


def object_name(given: str | None) -> str | None:
    """A name as it may stand in a path of the API. Raises InvalidInput for one that no object can have."""
    if given is not None and not _NAME.fullmatch(given):
        raise InvalidInput(
            f'nothing in Kubernetes is called "{given}": give the name alone, of lower-case letters, digits and hyphens'
        )
    return given


Job = Annotated[
    str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job, callback=object_name)
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace; the context's by default.", callback=object_name),
]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig; the current one by default.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, e.g. spec.seed=2.")
]
Form = Annotated[Literal["yaml", "json"], typer.Option("--output", "-o", help="Form of the output.")]
Json = Annotated[Literal["json"] | None, typer.Option("--output", "-o", help="json for machines.")]
