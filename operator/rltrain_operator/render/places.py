"""Where the pods of a collective group go: near each other, or apart."""

from rltrain.api import names
from rltrain_operator.render.context import Context, Object
from rltrain_operator.render.roles import RoleView

_WEIGHT = 100
"""The most that a preference may weigh."""


def places(ctx: Context, role: RoleView) -> Object:
    """Parts of the spec of a role's pods, as `scheduling.topology` says; nothing for roles that don't average."""
    topology = ctx.job.spec.scheduling.topology
    if topology is None or not averages(role):
        return {}
    selector = {"matchLabels": {names.LABEL_JOB_UID: ctx.uid, names.LABEL_ROLE: role.name}}
    if topology.policy == "Spread":
        constraint = {
            "maxSkew": 1,
            "topologyKey": topology.key,
            "whenUnsatisfiable": "DoNotSchedule" if topology.required else "ScheduleAnyway",
            "labelSelector": selector,
        }
        return {"topologySpreadConstraints": [constraint]}
    term = {"topologyKey": topology.key, "labelSelector": selector}
    if topology.required:
        return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    preferred = [{"weight": _WEIGHT, "podAffinityTerm": term}]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def averages(role: RoleView) -> bool:
    """Whether its pods average gradients over the network."""
    return role.name == names.WORKERS or (role.name == names.LEARNERS and role.replicas > 1)
