"""`rltrain crd`: the CustomResourceDefinition, for clusters without Helm."""

import typer

from rltrain.api.crd import crd as make_crd
from rltrain.api.resolve import dump_yaml


def crd() -> None:
    """Print the CustomResourceDefinition."""
    typer.echo(dump_yaml(make_crd()), nl=False)
