"""`rltrain crd`: the CustomResourceDefinition, for clusters without Helm."""

import typer

from rltrain.api.crd import crd as make_crd
from rltrain.api.resolve import to_yaml


def crd() -> None:
    """Print the CustomResourceDefinition."""
    typer.echo(to_yaml(make_crd()), nl=False)
