"""`rltrain delete`: take a job away, and its volume only if told to."""

import time
from typing import Annotated, Final

import typer

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.api.seen import claim_name
from rltrain.cli.cluster import Cluster, connect
from rltrain.cli.jobs import JobView, get_job
from rltrain.cli.options import Context, Job, Namespace
from rltrain.cli.refusals import NoSuchObject

WAIT_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.5


def delete(
    job: Job,
    namespace: Namespace = None,
    context: Context = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job and its pods are gone.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete its volume too, with the checkpoints of all jobs of this name.")
    ] = False,
) -> None:
    """Delete a job; its volume stays unless told otherwise."""
    cluster = connect(context, namespace)
    claim = _claim(cluster, job)
    try:
        found = get_job(cluster, job)
    except NoSuchObject:
        if not purge or claim is None:
            raise
        found = None
    if found is not None:
        cluster.delete(names.PLURAL, job, uid=found.uid)
        typer.echo(f"{names.KIND} {found.namespace}/{job} deleted")
        if not found.has_own_claim:
            typer.echo(f"The claim {found.claim} that it used stays: it isn't the job's own.")
    if claim is not None and purge:
        cluster.delete("persistentvolumeclaims", claim)
        typer.echo(f"Volume claim {claim} deleted, and with it the checkpoints.")
    elif claim is not None:
        typer.echo(
            f"Its volume claim {claim} stays, with the checkpoints: rltrain delete {job} --purge deletes it too."
        )
    if wait and found is not None:
        _wait(cluster, found)


def _claim(cluster: Cluster, job: str) -> str | None:
    """The claim that was made for jobs of this name, if it is there; never one that a user brought."""
    try:
        found = cluster.get("persistentvolumeclaims", claim_name(job))
    except NoSuchObject:
        return None
    labels = found["metadata"].get("labels") or {}
    made_by_us = labels.get(names.LABEL_MANAGED_BY) == names.MANAGED_BY and labels.get(names.LABEL_JOB) == job
    return claim_name(job) if made_by_us else None


def _wait(cluster: Cluster, job: JobView) -> None:
    """Until nothing of the job is left running. Raises RltrainError when that takes too long."""
    selector = {names.LABEL_JOB: job.name, names.LABEL_JOB_UID: job.uid}
    deadline = time.monotonic() + WAIT_SECONDS
    while _is_there(cluster, job) or cluster.select("pods", selector)["items"]:
        if time.monotonic() > deadline:
            raise RltrainError(f"{job.name} isn't gone after {WAIT_SECONDS:.0f} s: kubectl get pods shows what is left")
        time.sleep(_POLL_SECONDS)


def _is_there(cluster: Cluster, job: JobView) -> bool:
    """Whether this very job still exists, and not a namesake."""
    try:
        return JobView(cluster.get(names.PLURAL, job.name)).uid == job.uid
    except NoSuchObject:
        return False
