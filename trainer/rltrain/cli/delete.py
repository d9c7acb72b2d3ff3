"""`rltrain delete`: take a job away, and its volume only if told to."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.cli.options import Context, Namespace

if TYPE_CHECKING:
    from rltrain.cli.cluster import Cluster

WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.5


def delete(
    job: Annotated[str, typer.Argument(help="Name of the job.", show_default=False)],
    namespace: Namespace = None,
    context: Context = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job and its pods are gone.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the volume too, with the checkpoints of all jobs of this name.")
    ] = False,
) -> None:
    """Delete a job; its volume stays unless told otherwise."""
    from rltrain.cli.cluster import connect
    from rltrain.cli.jobs import claim_of, find_job

    cluster = connect(context, namespace)
    found = find_job(cluster, job, missing_ok=purge)
    if found is not None:
        cluster.delete(names.PLURAL, job, uid=found["metadata"]["uid"])
        typer.echo(f"{job} deleted")
    claim = claim_of(cluster, job)
    if purge and claim is not None:
        cluster.delete("persistentvolumeclaims", claim)
        typer.echo(f"its volume claim {claim} deleted")
    elif claim is not None:
        typer.echo(f"its volume claim {claim} stays, with the checkpoints (rltrain delete {job} --purge deletes it)")
    elif found is not None and (own := found["spec"].get("checkpoint", {}).get("storage", {}).get("claim")):
        typer.echo(f"the claim {own} that it used stays: it is yours")
    if wait and found is not None:
        _wait(cluster, job, found["metadata"]["uid"])


def _wait(cluster: "Cluster", job: str, uid: str) -> None:
    """Until nothing of the job runs any more. Raises RltrainError when that takes too long."""
    from rltrain.cli.jobs import is_there, pods_of

    deadline = time.monotonic() + WAIT_SECONDS
    while is_there(cluster, job, uid) or pods_of(cluster, job, uid):
        if time.monotonic() > deadline:
            raise RltrainError(f"{job} is not gone after {WAIT_SECONDS:.0f} s: see kubectl describe pods")
        time.sleep(_POLL_SECONDS)
