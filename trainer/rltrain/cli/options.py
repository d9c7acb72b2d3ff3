"""Options that several subcommands share."""

from typing import Annotated, Literal

import typer


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


Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job)]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; the context's by default.")]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig; the current one by default.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, e.g. spec.seed=2.")
]
Form = Annotated[Literal["yaml", "json"], typer.Option("--output", "-o", help="Form of the output.")]
Json = Annotated[Literal["json"] | None, typer.Option("--output", "-o", help="json for machines.")]
