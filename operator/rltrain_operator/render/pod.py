"""The pod template that all roles share, fit for the `restricted` Pod Security Standard."""

from collections.abc import Iterator
from typing import Any

from rltrain.api import names
from rltrain.api.seen import claim_name
from rltrain.api.storage import Code
from rltrain_operator.render import configmap, gang, secret
from rltrain_operator.render.context import Context, Object
from rltrain_operator.render.overlay import overlay
from rltrain_operator.render.places import places
from rltrain_operator.render.quantity import quantity_bytes
from rltrain_operator.render.roles import RoleView

CONTAINER = "rltrain"
USER = 1000
GRACE_SECONDS = 30
"""In which the driver saves a checkpoint after SIGTERM."""

MIN_OBJECT_STORE_BYTES = 75 * 1024 * 1024
"""Ray refuses a smaller one."""

_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod_template(ctx: Context, role: RoleView) -> Object:
    """A role's pods, with the user's template laid over them; identity and restart policy stay ours."""
    metadata: Object = {"labels": ctx.labels(role.name)}
    if annotations := gang.annotations(ctx):
        metadata["annotations"] = annotations
    rendered: Object = {"metadata": metadata, "spec": _pod_spec(ctx, role)}
    merged = overlay(rendered, role.spec.template or {})
    labels = merged["metadata"].get("labels") or {}
    return overlay(merged, {"metadata": {"labels": {**labels, **ctx.labels(role.name)}}})


def _pod_spec(ctx: Context, role: RoleView) -> Object:
    job = ctx.job.spec
    spec: Object = {
        "restartPolicy": "Never" if role.is_head else "OnFailure",
        "subdomain": ctx.name,
        "serviceAccountName": ctx.service_account,
        "automountServiceAccountToken": role.is_head,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": _POD_SECURITY,
        "containers": [_container(ctx, role)],
        "volumes": list(_volumes(ctx, role)),
        **gang.placing(ctx),
        **places(ctx, role),
    }
    if job.scheduling.priority_class_name is not None:
        spec["priorityClassName"] = job.scheduling.priority_class_name
    pull_secrets = [ref.name for ref in job.image_pull_secrets]
    if not job.image:
        pull_secrets = pull_secrets or list(ctx.config.image_pull_secrets)
    if pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in pull_secrets]
    if job.code is not None and job.code.uri is not None:
        spec["initContainers"] = [_fetch_code(ctx, job.code)]
    return spec


def _container(ctx: Context, role: RoleView) -> Object:
    container: Object = {
        "name": CONTAINER,
        **_image(ctx),
        "args": role.args,
        "env": list(_env(ctx, role)),
        "envFrom": [*configmap.defaults_source(ctx, role), *_user_env(ctx)],
        "ports": [{"name": "ray", "containerPort": role.port}],
        "readinessProbe": {"tcpSocket": {"port": role.port}, "periodSeconds": 3},
        "securityContext": _CONTAINER_SECURITY,
        # A process that dies without a word leaves its last lines of log as its message.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(_mounts(ctx, role)),
    }
    if not container["envFrom"]:
        del container["envFrom"]
    resources = role.spec.resources.model_dump(exclude_defaults=True)
    return {**container, "resources": resources} if resources else container


def _image(ctx: Context) -> Object:
    job = ctx.job.spec
    pull_policy = job.image_pull_policy or (None if job.image else ctx.config.image_pull_policy)
    image = {"image": job.image or ctx.config.trainer_image}
    return {**image, "imagePullPolicy": pull_policy} if pull_policy else image


def _env(ctx: Context, role: RoleView) -> Iterator[Object]:
    def field(path: str) -> Object:
        return {"fieldRef": {"fieldPath": path}}

    values: dict[str, str | Object] = {
        "RLTRAIN_JOB_NAME": ctx.name,
        "RLTRAIN_JOB_NAMESPACE": ctx.namespace,
        "RLTRAIN_JOB_UID": ctx.uid,
        "RLTRAIN_ROLE": role.name,
        "RLTRAIN_POD_NAME": field("metadata.name"),
        "RLTRAIN_POD_UID": field("metadata.uid"),
        "RLTRAIN_POD_IP": field("status.podIP"),
        "RLTRAIN_HEAD": f"{ctx.name}-{names.HEAD}-0.{ctx.name}",
        "RLTRAIN_OBJECT_STORE_BYTES": str(object_store_bytes(role.spec.shared_memory_size)),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": {"secretKeyRef": {"name": secret.secret_name(ctx), "key": secret.TOKEN_KEY}},
        "HOME": "/tmp",
    }
    if ctx.job.spec.code is not None:
        values["PYTHONPATH"] = names.CODE_PATH
    for name, value in values.items():
        yield {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}


def object_store_bytes(shared_memory_size: str) -> int:
    """Ray's share of /dev/shm: an eighth is left to torch, and a store that filled it up would meet SIGBUS."""
    return max(quantity_bytes(shared_memory_size) * 7 // 8, MIN_OBJECT_STORE_BYTES)


def _user_env(ctx: Context) -> list[Object]:
    return [source.model_dump(by_alias=True, exclude_none=True) for source in ctx.job.spec.env_from]


def _mounts(ctx: Context, role: RoleView) -> Iterator[Object]:
    manifest_folder = names.MANIFEST_PATH.rpartition("/")[0]
    yield {"name": "manifest", "mountPath": manifest_folder, "readOnly": True}
    yield {"name": "tmp", "mountPath": "/tmp"}
    yield {"name": "shm", "mountPath": "/dev/shm"}
    if role.is_head:
        yield {"name": "data", "mountPath": names.DATA_PATH}
    code = ctx.job.spec.code
    if code is not None:
        mount: Object = {"name": "code", "mountPath": names.CODE_PATH, "readOnly": True}
        if code.claim is not None and code.claim.path.strip("/"):
            mount["subPath"] = code.claim.path.strip("/")
        yield mount


def _volumes(ctx: Context, role: RoleView) -> Iterator[Object]:
    yield {"name": "manifest", "configMap": {"name": configmap.manifest_name(ctx)}}
    yield {"name": "tmp", "emptyDir": {}}
    yield {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": role.spec.shared_memory_size}}
    if role.is_head:
        claim = claim_name(ctx.name, ctx.job.spec.checkpoint.storage.claim)
        yield {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    if ctx.job.spec.code is not None:
        yield {"name": "code", **_code_source(ctx.job.spec.code)}


def _code_source(code: Code) -> dict[str, Any]:
    if code.config_map is not None:
        return {"configMap": {"name": code.config_map.name}}
    if code.claim is not None:
        return {"persistentVolumeClaim": {"claimName": code.claim.name, "readOnly": True}}
    return {"emptyDir": {}}


def _fetch_code(ctx: Context, code: Code) -> Object:
    assert code.uri is not None
    check = ["--sha256", code.uri.sha256] if code.uri.sha256 else []
    container: Object = {
        "name": "fetch-code",
        **_image(ctx),
        # After `--`, an address that starts with a hyphen is still an address.
        "args": ["fetch-code", "--out", names.CODE_PATH, *check, "--", code.uri.url],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "securityContext": _CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "code", "mountPath": names.CODE_PATH}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    env_from = _user_env(ctx)
    return {**container, "envFrom": env_from} if env_from else container
