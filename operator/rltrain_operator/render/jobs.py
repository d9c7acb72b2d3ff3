"""One Indexed Job a role: the cluster itself replaces lost pods, with or without us."""

from typing import Any

from rltrain.api import names
from rltrain_operator.render.context import Context, Object
from rltrain_operator.render.pod import CONTAINER, pod_template
from rltrain_operator.render.roles import RoleView

ENDLESS = 2**31 - 1
"""Failures of an index that a role other than the head may have: only the head's end ends a job."""


def job_name(job: str, role: str) -> str:
    return f"{job}-{role}"


def role_job(ctx: Context, role: RoleView) -> Object:
    """The Job of a role."""
    policy = _head_policy(ctx) if role.is_head else _node_policy()
    spec = {
        "completionMode": "Indexed",
        "completions": role.replicas,
        "parallelism": role.replicas,
        **policy,
        "template": pod_template(ctx, role),
    }
    return ctx.object("batch/v1", "Job", job_name(ctx.name, role.name), role=role.name, spec=spec)


def _head_policy(ctx: Context) -> dict[str, Any]:
    """One head at a time, a new one only when the old is gone; what trying again can't mend fails at once.

    There is one index, so a plain limit means the same as one for each index; but with the latter the Job controller
    keeps its finalizer on a failed pod until there is another, and a namespace that is being deleted takes no others.
    """
    hopeless = [names.EXIT_INVALID, names.EXIT_DEADLINE]
    return {
        "backoffLimit": ctx.job.spec.run_policy.max_restarts,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": hopeless},
                },
            ]
        },
    }


def _node_policy() -> dict[str, Any]:
    """The limit is for each index because the back-off is too: pods lost over days must not slow one another down."""
    return {"backoffLimitPerIndex": ENDLESS, "podReplacementPolicy": "TerminatingOrFailed"}
