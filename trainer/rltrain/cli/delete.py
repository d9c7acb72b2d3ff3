"""`rltrain delete`: take a job away, and its volume only if told to."""

import time
from typing import Annotated, Final

import typer

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.cli.cluster import Cluster, connect
from rltrain.cli.jobs import JobView, get_job, own_claim, pods_of
from rltrain.cli.options import Context, Job, Namespace
from rltrain.cli.refusals import NoSuchObject

CLAIMS: Final = "persistentvolumeclaims"
WAIT_SECONDS: Final = 120.0


def delete(
    job: Job,
    namespace: Namespace = None,
    context: Context = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job and its pods are gone.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the volume too, with the checkpoints of all jobs of this name.")
    ] = False,
) -> None:
    """Delete a job; its volume stays unless told otherwise."""
    cluster = connect(context, namespace)
    claim = _claim(cluster, job)
    try:
        view = get_job(cluster, job)
    except NoSuchObject:
        # What a deleted job left behind can still be purged.
        if not (purge and claim):
            raise
    else:
        cluster.delete(names.PLURAL, job, uid=view.uid)
        typer.echo(f"{names.KIND} {view.namespace}/{job} deleted")
        if not view.has_own_claim:
            typer.echo(f"The claim {view.claim}, which the job was given, stays.")
        if wait:
            _wait(cluster, view)
    if claim and purge:
        cluster.delete(CLAIMS, claim)
        typer.echo(f"claim {claim} deleted")
    elif claim:
        typer.echo(f"Its volume stays, claim {claim}: rltrain delete {job} --purge takes it away.")


def _claim(cluster: Cluster, job: str) -> str | None:
    """The claim that was made for jobs of this name, if it is there."""
    name = own_claim(job)
    try:
        found = cluster.get(CLAIMS, name)
    except NoSuchObject:
        return None
    labels = found["metadata"].get("labels") or {}
    return name if labels.get(names.LABEL_MANAGED_BY) == names.MANAGED_BY else None


def _wait(cluster: Cluster, job: JobView) -> None:
    """Return when the job and its pods are gone. Raises RltrainError when they stay."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        left = [pod["metadata"]["name"] for pod in pods_of(cluster, job)]
        if not left and not _is_there(cluster, job):
            return
        if time.monotonic() > deadline:
            raise RltrainError(f"not gone after {WAIT_SECONDS:.0f} s: {', '.join([job.name, *left])}")
        time.sleep(0.5)


def _is_there(cluster: Cluster, job: JobView) -> bool:
    try:
        return JobView(cluster.get(names.PLURAL, job.name)).uid == job.uid
    except NoSuchObject:
        return False
