"""ConfigMaps: the resolved manifest, and environment defaults that a user may override."""

from io import StringIO

from ruamel.yaml import YAML

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render.context import Context, Object
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
    return ctx.object("v1", "ConfigMap", manifest_name(ctx), data={MANIFEST_KEY: manifest_yaml(ctx.job)})


def manifest_yaml(job: RLTrainingJob) -> str:
    """The resolved manifest as YAML 1.2, every default written out; null isn't the same as not given."""
    metadata = {"name": job.metadata.name, "namespace": job.metadata.namespace, "uid": job.metadata.uid}
    tree = {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "metadata": {key: value for key, value in metadata.items() if value is not None},
        "spec": job.spec.model_dump(mode="json", by_alias=True),
    }
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.dump(tree, text)
    return text.getvalue()


def defaults(ctx: Context, role: RoleView) -> Object | None:
    """Defaults of the collective libraries, for ranks.

    A variable in `env` would win over the user's `envFrom`; as the first `envFrom` source it yields to the rest.
    """
    if role.name != names.WORKERS:
        return None
    return ctx.object("v1", "ConfigMap", defaults_name(ctx), role=role.name, data=COLLECTIVE_DEFAULTS)


def defaults_source(ctx: Context, role: RoleView) -> list[Object]:
    """The `envFrom` entry of a role that has defaults."""
    return [{"configMapRef": {"name": defaults_name(ctx)}}] if role.name == names.WORKERS else []
