"""Volcano's gang: either all pods that a job can't do without are placed, or none."""

from collections.abc import Sequence

from rltrain.api import names
from rltrain_operator.render.context import Context, Object
from rltrain_operator.render.roles import RoleView

API_VERSION = "scheduling.volcano.sh/v1beta1"
SCHEDULER = "volcano"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"


def uses_volcano(ctx: Context) -> bool:
    """Whether Volcano places the job's pods: as it is told, or as it is there and no queue of Kueue's is named."""
    scheduling = ctx.job.spec.scheduling
    return scheduling.gang == "Volcano" or (
        scheduling.gang == "Auto" and scheduling.queue_name is None and ctx.served.volcano
    )


def pod_group(ctx: Context, roles: Sequence[RoleView]) -> Object | None:
    """The gang: the head, and of each other role as many pods as training needs."""
    if not uses_volcano(ctx):
        return None
    scheduling = ctx.job.spec.scheduling
    spec: Object = {"minMember": sum(_needed(role) for role in roles)}
    if scheduling.queue_name is not None:
        spec["queue"] = scheduling.queue_name
    if scheduling.priority_class_name is not None:
        spec["priorityClassName"] = scheduling.priority_class_name
    return ctx.object(API_VERSION, "PodGroup", ctx.name, spec=spec)


def annotations(ctx: Context) -> dict[str, str]:
    """By which a pod is one of the gang."""
    return {GROUP_ANNOTATION: ctx.name} if uses_volcano(ctx) else {}


def scheduler(ctx: Context) -> dict[str, str]:
    """The part of a pod's spec that says who places it."""
    return {"schedulerName": SCHEDULER} if uses_volcano(ctx) else {}


def _needed(role: RoleView) -> int:
    """Rollouts and ranks above their minimum are welcome, but training doesn't wait for them."""
    if role.name not in (names.ROLLOUTS, names.WORKERS):
        return role.replicas
    return min(getattr(role.spec, "min_replicas", None) or 1, role.replicas)
