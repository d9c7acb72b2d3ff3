"""How many pods a role of a running job is to have."""

from collections.abc import Iterator, Sequence

from rltrain.api import names
from rltrain_operator.plan.actions import Change
from rltrain_operator.plan.conditions import Event
from rltrain_operator.plan.observed import ChildJob, JobView
from rltrain_operator.render import Object


def followed(view: JobView, jobs: Sequence[ChildJob]) -> Object | None:
    """The job's spec with as many rollouts as the driver proposes, where it may; at first, as many as there are."""
    spec = view.spec
    rollouts = _autoscaled(spec)
    if spec is None or rollouts is None:
        return spec
    there = next((job.desired for job in jobs if job.role == names.ROLLOUTS), None)
    wanted = view.progress.get("rolloutsProposed") or there
    least, most = rollouts.get("minReplicas") or 1, rollouts.get("maxReplicas")
    if not (isinstance(wanted, int) and isinstance(least, int) and isinstance(most, int)):
        return spec
    return {**spec, names.ROLLOUTS: {**rollouts, "replicas": max(least, min(wanted, most))}}


def _autoscaled(spec: Object | None) -> Object | None:
    """The rollouts of a job whose driver may say how many they are."""
    rollouts = None if spec is None else spec.get(names.ROLLOUTS)
    return rollouts if isinstance(rollouts, dict) and rollouts.get("autoscale") is True else None


def resized(view: JobView, roles: Sequence[Object]) -> Iterator[Event]:
    """An event for each role of `status.roles` that has another size than was last said."""
    before = {role["name"]: role["desired"] for role in view.status.get("roles") or []}
    for role in roles:
        name, now = role["name"], role["desired"]
        if (was := before.get(name, now)) != now:
            why = ", as suits the learner" if name == names.ROLLOUTS and _autoscaled(view.spec) else ""
            yield Event("Normal", "Resized", f"{name}: from {was} to {now} pods{why}.")


def changes(view: JobView, jobs: Sequence[ChildJob], desired: Sequence[Object]) -> Iterator[Change]:
    """What to set in Jobs so that they have the size, and the patience, that the manifest says."""
    specs = {child["metadata"]["name"]: child["spec"] for child in desired if child["kind"] == "Job"}
    for job in jobs:
        wanted = specs.get(job.name)
        if wanted is None or job.finished:
            continue
        spec: dict[str, int] = {}
        count = wanted["completions"]
        if count > job.desired or (count < job.desired and _may_leave(view, count)):
            # A Job with a name for each pod takes another size only if both are changed together.
            spec |= {"completions": count, "parallelism": count}
        if job.role == names.HEAD and wanted["backoffLimit"] != job.max_restarts:
            spec["backoffLimit"] = wanted["backoffLimit"]
        if spec:
            yield Change(job, spec)


def _may_leave(view: JobView, count: int) -> bool:
    """Pods beyond `count` aren't missed: the driver has let go of them, or there is none to miss them."""
    if view.progress.get("phase") != "Training":
        return True
    wanted = view.progress.get("workersWanted")
    return isinstance(wanted, int) and wanted <= count
