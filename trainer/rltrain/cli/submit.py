"""`rltrain submit`: a manifest for a cluster."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rltrain.api import names
from rltrain.api.errors import InvalidInput
from rltrain.api.job import RLTrainingJob
from rltrain.api.load import load_job
from rltrain.cli.changes import wait_finished
from rltrain.cli.cluster import Cluster, connect
from rltrain.cli.jobs import JobView
from rltrain.cli.options import Context, Namespace, Overrides
from rltrain.cli.refusals import NoSuchObject


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The manifest; - for stdin.", show_default=False)],
    set_: Overrides = None,
    namespace: Namespace = None,
    context: Context = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the job to its end; its result is the exit code.")
    ] = False,
) -> None:
    """Check a manifest here, then apply it to a cluster."""
    job = load_job(file, set_ or [])
    given = job.metadata.namespace
    if given is not None and namespace is not None and given != namespace:
        raise InvalidInput(f"{file}: metadata.namespace is {given}, but --namespace says {namespace}: leave one out")
    cluster = connect(context, namespace or given)
    applied, done = apply(cluster, job)
    typer.echo(f"{names.KIND} {applied.namespace}/{applied.name} {done}")
    if applied.finished:
        typer.echo(
            f"It is finished ({applied.state}): rltrain delete {applied.name}, then submit it again, trains anew."
        )
    if wait:
        finished = wait_finished(cluster, applied, typer.echo)
        raise typer.Exit(finished.exit_code)


def apply(cluster: Cluster, job: RLTrainingJob) -> tuple[JobView, str]:
    """Server-side apply; the job as it is then, and what that did to it."""
    try:
        before = cluster.get(names.PLURAL, job.metadata.name)["metadata"]
    except NoSuchObject:
        before = None
    after = cluster.apply(names.PLURAL, _as_given(cluster, job))
    if before is None or before["uid"] != after["metadata"]["uid"]:
        return JobView(after), "created"
    if before["generation"] == after["metadata"]["generation"]:
        return JobView(after), "unchanged"
    return JobView(after), "changed; pods that run keep to what they started with (rltrain status tells)"


def _as_given(cluster: Cluster, job: RLTrainingJob) -> dict[str, Any]:
    """Only what the user wrote: defaults are the API server's to fill in, so that they aren't ours to own."""
    given = job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    kept = {key: given["metadata"][key] for key in ("name", "labels", "annotations") if key in given["metadata"]}
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "metadata": {**kept, "namespace": cluster.namespace},
        "spec": given["spec"],
    }
