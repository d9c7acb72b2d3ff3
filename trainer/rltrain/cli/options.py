"""Options that several subcommands have."""

from typing import Annotated

import typer

Namespace = Annotated[
    str | None, typer.Option("-n", "--namespace", help="Namespace; the context's own by default.", show_default=False)
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig; its current one by default.", show_default=False),
]
