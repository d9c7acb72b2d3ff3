"""ConfigMaps: the resolved manifest, and environment defaults that a user may override."""

from rltrain.api import names
from rltrain.api.resolve import resolved_json
from rltrain_operator.render.context import Context, Object
from rltrain_operator.render.places import averages
from rltrain_operator.render.roles import RoleView

MANIFEST_KEY = names.MANIFEST_PATH.rpartition("/")[2]

COLLECTIVE_DEFAULTS = {
    "GLOO_SOCKET_IFNAME": "eth0",
    "NCCL_DEBUG": "WARN",
    "NCCL_SOCKET_IFNAME": "eth0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
}


def manifest_name(ctx: Context) -> str:
    return f"{ctx.name}-manifest"


def defaults_name(ctx: Context) -> str:
    return f"{ctx.name}-defaults"


def manifest(ctx: Context) -> Object:
    """What the head and the nodes read: the job as resolved, without its status."""
    return ctx.object("v1", "ConfigMap", manifest_name(ctx), data={MANIFEST_KEY: resolved_json(ctx.job)})


def defaults(ctx: Context, role: RoleView) -> Object | None:
    """Defaults of the collective libraries, for ranks and for learners that learn together.

    A variable in `env` would win over the user's `envFrom`; as the first `envFrom` source it yields to the rest.
    """
    if not averages(role):
        return None
    return ctx.object("v1", "ConfigMap", defaults_name(ctx), role=role.name, data=COLLECTIVE_DEFAULTS)


def defaults_source(ctx: Context, role: RoleView) -> list[Object]:
    """The `envFrom` entry of a role that has defaults."""
    return [{"configMapRef": {"name": defaults_name(ctx)}}] if averages(role) else []
