"""`rltrain submit`: manifests for a cluster."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rltrain.api import names
from rltrain.api.errors import InvalidInput
from rltrain.api.job import RLTrainingJob
from rltrain.api.load import load_all
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
        bool, typer.Option("--wait", help="Follow each job to its end; the first failure is the exit code.")
    ] = False,
) -> None:
    """Check a manifest here, then apply its jobs to a cluster."""
    manifests = load_all(file, set_ or [])
    jobs = [loaded.job for loaded in manifests.jobs]
    for given in (job.metadata.namespace for job in jobs):
        if given is not None and namespace is not None and given != namespace:
            raise InvalidInput(
                f"{file}: metadata.namespace is {given}, but --namespace says {namespace}: leave one out"
            )
    for other in manifests.others:
        typer.echo(f"{manifests.source}:{other}", err=True)
    submitted = [_submit(connect(context, namespace or job.metadata.namespace), job) for job in jobs]
    if wait:
        ends = [wait_finished(cluster, applied, typer.echo) for cluster, applied in submitted]
        raise typer.Exit(next((end.exit_code for end in ends if end.exit_code), names.EXIT_DONE))


def _submit(cluster: Cluster, job: RLTrainingJob) -> tuple[Cluster, JobView]:
    applied, done = apply(cluster, job)
    typer.echo(f"{names.KIND} {applied.namespace}/{applied.name} {done}")
    if applied.finished:
        typer.echo(
            f"It is finished ({applied.state}): rltrain delete {applied.name}, then submit it again, trains anew."
        )
    return cluster, applied


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
