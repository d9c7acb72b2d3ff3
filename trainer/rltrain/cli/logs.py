"""`rltrain logs`: what a job's pods say, whichever attempt they are of."""

from typing import Annotated

import typer

from rltrain.api.names import RoleName
from rltrain.cli.cluster import connect
from rltrain.cli.follow_logs import LogFollower
from rltrain.cli.jobs import JobView, get_job, pods_of
from rltrain.cli.options import Context, Job, Json, Namespace
from rltrain.cli.pods import container_started, latest, log_line


def logs(
    job: Job,
    namespace: Namespace = None,
    context: Context = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for the pods and print their lines until the job is finished.")
    ] = False,
    role: Annotated[RoleName | None, typer.Option("--role", help="Of the pods of this role only.")] = None,
    output: Json = None,
    tail: Annotated[int | None, typer.Option("--tail", min=0, help="Last lines of each pod only.")] = None,
) -> None:
    """Print the logs of a job's pods, each line with its pod's role."""
    cluster = connect(context, namespace)
    view = get_job(cluster, job)
    if follow:
        LogFollower(cluster, view, role, tail, output).run()
        return
    pods = [pod for pod in latest(pods_of(cluster, view, role)) if container_started(pod)]
    for pod in pods:
        for line in cluster.log_lines(pod["metadata"]["name"], follow=False, tail=tail):
            typer.echo(log_line(pod, line, output))
    if not pods:
        typer.echo(_instead(view, role), err=True)


def _instead(job: JobView, role: str | None) -> str:
    """What there is to say when there is no log."""
    which = f"no pod of role {role}" if role is not None else "no pod"
    state = "is finished" if job.finished else "isn't running"
    return f"{which} of {job.name} has a log: the job {state} ({job.state}). {job.why or ''}".rstrip()
