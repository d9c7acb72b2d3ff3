"""What the head pod may do: report its own job's progress."""

from rltrain.api import names
from rltrain_operator.render.context import Context, Object

RBAC_API = "rbac.authorization.k8s.io"


def driver_name(ctx: Context) -> str:
    return f"{ctx.name}-driver"


def service_account(ctx: Context) -> Object | None:
    """None when the user brings an identity."""
    if ctx.job.spec.service_account_name is not None:
        return None
    return ctx.object("v1", "ServiceAccount", driver_name(ctx), automountServiceAccountToken=False)


def role(ctx: Context) -> Object:
    rule = {
        "apiGroups": [names.GROUP],
        "resources": [f"{names.PLURAL}/status"],
        "resourceNames": [ctx.name],
        "verbs": ["patch"],
    }
    return ctx.object(f"{RBAC_API}/v1", "Role", driver_name(ctx), rules=[rule])


def role_binding(ctx: Context) -> Object:
    """Also binds a user's own ServiceAccount, which otherwise couldn't report progress."""
    return ctx.object(
        f"{RBAC_API}/v1",
        "RoleBinding",
        driver_name(ctx),
        roleRef={"apiGroup": RBAC_API, "kind": "Role", "name": driver_name(ctx)},
        subjects=[{"kind": "ServiceAccount", "name": ctx.service_account, "namespace": ctx.namespace}],
    )
