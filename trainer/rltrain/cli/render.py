"""`rltrain render`: what the operator would make of a manifest, without a cluster."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rltrain.api.document import Mark, dotted
from rltrain.api.load import Loaded, load
from rltrain.api.resolve import origins, to_yaml
from rltrain.cli.options import Form, Overrides, object_name
from rltrain.cli.table import columns

if TYPE_CHECKING:
    from rltrain_operator.render.offline import Offline

DEFAULT_IMAGE: Final = "rltrain-trainer"
TOKEN: Final = "(random, made by the operator)"


def render(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The manifest; - for stdin.", show_default=False)],
    set_: Overrides = None,
    uid: Annotated[
        str | None, typer.Option("--uid", help="UID to render with; zeros stand for the one that a cluster gives.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace where the manifest names none.", callback=object_name),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", help="The operator's image for manifests that name none.")
    ] = DEFAULT_IMAGE,
    volcano: Annotated[
        bool,
        typer.Option("--volcano", help="As on a cluster that has Volcano, where scheduling.gang leaves that open."),
    ] = False,
    output: Form = "yaml",
    show_origins: Annotated[
        bool, typer.Option("--origins", help="Print each value of the manifest and where it comes from instead.")
    ] = False,
) -> None:
    """Print the objects that the operator would apply for a manifest, on a cluster with what that asks for."""
    loaded = load(file, set_ or [])
    if show_origins:
        typer.echo(_origins(loaded, str(file), output))
        return
    rendered = _rendered(loaded, uid, namespace, image, volcano)
    comments = "".join(f"# {assumption}\n" for assumption in rendered.assumptions)
    if output == "json":
        typer.echo(comments, err=True, nl=False)  # JSON has no place for them
        typer.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered.objects}, indent=2))
    else:
        typer.echo(comments + "---\n".join(map(to_yaml, rendered.objects)), nl=False)


def _rendered(loaded: Loaded, uid: str | None, namespace: str | None, image: str, volcano: bool) -> "Offline":
    from rltrain_operator.render import OperatorConfig
    from rltrain_operator.render.offline import render_offline

    metadata = loaded.job.metadata
    placed = metadata.model_copy(
        update={"uid": uid or metadata.uid, "namespace": namespace or metadata.namespace or "default"}
    )
    job = loaded.job.model_copy(update={"metadata": placed})
    return render_offline(job, OperatorConfig(image), TOKEN, volcano=volcano)


def _origins(loaded: Loaded, file: str, output: str) -> str:
    """Each value below ``spec`` with the line, the flag, the plan or the default that it comes from."""
    rows = []
    for path, value, origin in origins(loaded.job, loaded.root):
        mark, _, _ = loaded.root.find(path)
        place = _place(mark, file) if origin in ("file", "flag") else loaded.job.spec.base if origin == "plan" else None
        rows.append((dotted(path), value, origin, place))
    if output == "json":
        keys = ("path", "value", "origin", "place")
        return json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2)
    shown = [(path, json.dumps(value), origin + (f" {place}" if place else "")) for path, value, origin, place in rows]
    return "\n".join(columns([("FIELD", "VALUE", "FROM"), *shown]))


def _place(mark: Mark, file: str) -> str:
    return mark.flag if mark.flag is not None else f"{file}:{mark.line}"
