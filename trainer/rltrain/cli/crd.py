"""`rltrain crd`: the CustomResourceDefinition, for clusters without Helm."""

import json

import typer

from rltrain.api.crd import crd as make_crd
from rltrain.api.resolve import to_yaml
from rltrain.cli.options import Form


def crd(output: Form = "yaml") -> None:
    """Print the CustomResourceDefinition."""
    made = make_crd()
    typer.echo(json.dumps(made, indent=2) + "\n" if output == "json" else to_yaml(made), nl=False)
