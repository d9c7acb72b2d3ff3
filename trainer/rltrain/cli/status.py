"""`rltrain status`: the jobs of a cluster, or all there is to know of one."""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from rltrain.api.errors import InvalidInput
from rltrain.cli.changes import progress_line, to_the_end, wait_finished
from rltrain.cli.cluster import connect
from rltrain.cli.jobs import JobView, age, get_job, list_jobs
from rltrain.cli.options import Context, Json, Namespace, complete_job, object_name
from rltrain.cli.table import columns


def status(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB",
            help="Of this job, in detail.",
            autocompletion=complete_job,
            callback=object_name,
            show_default=False,
        ),
    ] = None,
    namespace: Namespace = None,
    context: Context = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Jobs of every namespace.")] = False,
    output: Json = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="A line for each change of JOB, to its end.")] = False,
) -> None:
    """Show how the jobs of a cluster are doing, or one of them in detail."""
    if watch and job is None:
        raise InvalidInput("--watch follows one job: name it")
    if all_namespaces and job is not None:
        raise InvalidInput(f"--all-namespaces lists jobs: leave {job} out, or give its namespace with -n")
    cluster = connect(context, namespace)
    if job is None:
        found = sorted(list_jobs(cluster, all_namespaces=all_namespaces), key=lambda view: (view.namespace, view.name))
        if output == "json":
            _print_json([view.to_json() for view in found])
        elif not found:
            typer.echo("no jobs" if all_namespaces else f"no jobs in namespace {cluster.namespace}", err=True)
        else:
            _print(_table(found, all_namespaces=all_namespaces))
        return
    view = get_job(cluster, job)
    if watch and output == "json":
        seen = view
        for seen in to_the_end(cluster, view):
            typer.echo(json.dumps(seen.to_json(), allow_nan=False))
        raise typer.Exit(seen.exit_code)
    if watch:
        raise typer.Exit(wait_finished(cluster, view, typer.echo).exit_code)
    if output == "json":
        _print_json(view.to_json())
    else:
        _print(_details(view))


def _table(jobs: Iterable[JobView], *, all_namespaces: bool) -> Iterator[str]:
    head = ("NAME", "PLAN", "STATE", "STEPS", "RETURN", "READY", "AGE")
    rows = []
    for job in jobs:
        progress = job.status.progress
        steps = str(progress.steps) if progress is not None else ""
        mean = progress.episode_return_mean if progress is not None else None
        row = (job.name, job.plan, job.state, steps, f"{mean:.6g}" if mean is not None else "", _ready(job))
        rows.append((job.namespace, *row, age(job.created)))
    shown = [("NAMESPACE", *head), *rows]
    yield from columns(shown if all_namespaces else [row[1:] for row in shown])


def _ready(job: JobView) -> str:
    roles = job.status.roles
    return f"{sum(role.ready for role in roles)}/{sum(role.desired for role in roles)}" if roles else ""


def _details(job: JobView) -> Iterator[str]:
    yield f"{job.namespace}/{job.name}: {job.state}"
    if job.why:
        yield f"  {job.why}"
    yield ""
    yield from columns([(f"  {name}", value) for name, value in _facts(job)])
    if job.status.conditions:
        yield ""
        rows = [(c.type, c.status, c.reason, age(c.last_transition_time), c.message) for c in job.status.conditions]
        yield from columns([("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"), *rows])


def _facts(job: JobView) -> Iterator[tuple[str, str]]:
    yield "plan", job.plan
    yield "created", f"{age(job.created)} ago"
    yield "volume", f"{job.claim}, folder {job.uid}"
    for role in job.status.roles:
        failed = f", {role.failed} failed" if role.failed else ""
        yield role.name, f"{role.ready}/{role.desired} ready{failed}"
    progress = job.status.progress
    if progress is not None:
        resumed = progress.resumed_from_steps
        yield "attempt", f"{progress.attempt}{f', resumed at {resumed} steps' if resumed is not None else ''}"
        yield "progress", progress_line(job)
        if progress.workers_wanted:
            yield "workers", f"{progress.workers_healthy}/{progress.workers_wanted} healthy"
        if progress.stop_reason:
            yield "stopped by", progress.stop_reason
    checkpoint = job.status.checkpoint
    if checkpoint is not None:
        yield "checkpoint", f"{checkpoint.path} at {checkpoint.env_steps} steps, {age(checkpoint.saved_at)} ago"
        if checkpoint.best_path is not None:
            yield "best", f"{checkpoint.best_path} with return {checkpoint.best_return_mean or 0.0:.6g}"


def _print(lines: Iterable[str]) -> None:
    typer.echo("\n".join(lines))


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))
