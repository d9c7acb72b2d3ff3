"""Gangs: either all pods that a job can't do without are placed, or none."""

from collections.abc import Sequence
from typing import Literal

from rltrain.api import names
from rltrain.api.scheduling import Scheduling
from rltrain_operator.render.context import Context, Object, Served
from rltrain_operator.render.roles import RoleView

KIND = "PodGroup"
VOLCANO, VOLCANO_VERSION = "scheduling.volcano.sh", "v1beta1"
SCHEDULER = "volcano"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"

KUBERNETES = "scheduling.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")
"""Of Kubernetes' own API, those that can be spoken, the best first: that of 1.37 and that of 1.36."""
_FIXED = "v1alpha2"
"""Its groups can't be changed, and Jobs whose pods are in one can't be made larger or smaller."""


def keeper(scheduling: Scheduling, served: Served) -> Literal["Volcano", "Kubernetes"] | None:
    """Who places the job's pods together; None where nobody does, or Kueue decides over them.

    By itself that is Volcano where it is there, for nobody installs it for anything else, then Kubernetes. But where
    Kubernetes' gangs are alpha they have to be asked for: sizes are fixed then, and unless each part of the cluster has
    them on, groups have no meaning, or are never let go of.
    """
    if scheduling.gang in ("Volcano", "Kubernetes"):
        return scheduling.gang
    if scheduling.gang != "Auto" or scheduling.queue_name is not None:
        return None
    if served.volcano:
        return "Volcano"
    return "Kubernetes" if served.pod_groups not in (None, _FIXED) else None


def fixes_sizes(scheduling: Scheduling, served: Served) -> bool:
    """Whether replicas stay as they are while there are pods."""
    return keeper(scheduling, served) == "Kubernetes" and served.pod_groups == _FIXED


def pod_group(ctx: Context, roles: Sequence[RoleView]) -> Object | None:
    """The gang: the head, and of each other role as many pods as training needs."""
    scheduling, needed = ctx.job.spec.scheduling, sum(_needed(role) for role in roles)
    priority = scheduling.priority_class_name
    spec: Object = {} if priority is None else {"priorityClassName": priority}
    match _keeper(ctx):
        case "Volcano" if ctx.served.volcano:
            spec |= {"minMember": needed}
            if scheduling.queue_name is not None:
                spec["queue"] = scheduling.queue_name
            return ctx.object(f"{VOLCANO}/{VOLCANO_VERSION}", KIND, ctx.name, spec=spec)
        case "Kubernetes" if ctx.served.pod_groups is not None:
            spec |= {"schedulingPolicy": {"gang": {"minCount": needed}}}
            return ctx.object(f"{KUBERNETES}/{ctx.served.pod_groups}", KIND, ctx.name, spec=spec)
    return None


def annotations(ctx: Context) -> dict[str, str]:
    """By which a pod is one of Volcano's gang."""
    return {GROUP_ANNOTATION: ctx.name} if _keeper(ctx) == "Volcano" else {}


def placing(ctx: Context) -> Object:
    """The parts of a pod's spec that say who places it, and with which others."""
    match _keeper(ctx):
        case "Volcano":
            return {"schedulerName": SCHEDULER}
        case "Kubernetes":
            return {"schedulingGroup": {"podGroupName": ctx.name}}
    return {}


def _keeper(ctx: Context) -> Literal["Volcano", "Kubernetes"] | None:
    return keeper(ctx.job.spec.scheduling, ctx.served)


def _needed(role: RoleView) -> int:
    """Rollouts and ranks above their minimum are welcome, but training doesn't wait for them."""
    if role.name not in (names.ROLLOUTS, names.WORKERS):
        return role.replicas
    return min(getattr(role.spec, "min_replicas", None) or 1, role.replicas)
