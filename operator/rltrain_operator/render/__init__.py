"""Desired objects of a job: pure functions, one file for each kind."""

import hashlib
import json

from rltrain.api import names
from rltrain.api.errors import InvalidManifest
from rltrain.api.job import PlanSpec, RLTrainingJob
from rltrain.api.run_policy import RunPolicy
from rltrain_operator.render import claim, configmap, gang, networkpolicy, rbac, service
from rltrain_operator.render import secret as secrets
from rltrain_operator.render.context import (
    ANNOTATION_GANG,
    ANNOTATION_HASH,
    ANNOTATION_MANIFEST,
    NONE_SERVED,
    Context,
    Object,
    OperatorConfig,
    Served,
)
from rltrain_operator.render.jobs import job_name, role_job
from rltrain_operator.render.overlay import template_problems
from rltrain_operator.render.roles import RoleView, roles

__all__ = [
    "ANNOTATION_GANG",
    "ANNOTATION_HASH",
    "ANNOTATION_MANIFEST",
    "NONE_SERVED",
    "Context",
    "Object",
    "OperatorConfig",
    "RoleView",
    "Served",
    "job_name",
    "manifest_hash",
    "render",
    "roles",
    "token_secret",
]


def render(
    job: RLTrainingJob, config: OperatorConfig, token: str | None = None, served: Served = NONE_SERVED
) -> list[Object]:
    """All objects of a job, in the order to apply them in.

    Args:
        job: the manifest; its metadata carries the UID once the API server has seen it.
        config: what the operator adds.
        token: the Ray token for the Secret, which is left out when there is none to write.
        served: schedulers that the cluster has.

    Raises:
        InvalidManifest: a role's `template` can't be laid over the pods.
    """
    ctx = Context(job, config, served)
    views = roles(job)
    problems = [
        problem
        for view in views
        for problem in template_problems(view.spec.template or {}, f"spec.{view.name}.template")
    ]
    if problems:
        raise InvalidManifest(problems, job.metadata.name)
    small = [
        rbac.service_account(ctx),
        rbac.role(ctx),
        rbac.role_binding(ctx),
        networkpolicy.network_policy(ctx),
        token_secret(job, config, token) if token is not None else None,
        _annotated(configmap.manifest(ctx), {ANNOTATION_HASH: _spec_hash(job.spec)}),
        *(configmap.defaults(ctx, view) for view in views),
        service.service(ctx),
        claim.claim(ctx),
        gang.pod_group(ctx, views),
    ]
    scheduling = job.spec.scheduling
    keeper = gang.keeper(scheduling, served) or ("Kueue" if scheduling.in_kueue else "None")
    made = {ANNOTATION_MANIFEST: manifest_hash(job), ANNOTATION_GANG: keeper}
    jobs = [_annotated(role_job(ctx, view), made) for view in views]
    return [_with_hash(child) for child in [*small, *jobs] if child is not None]


def token_secret(job: RLTrainingJob, config: OperatorConfig, token: str) -> Object:
    """The Secret alone: unlike the rest it isn't the same each time."""
    return _with_hash(secrets.secret(Context(job, config), token))


def manifest_hash(job: RLTrainingJob) -> str:
    """Hash of all that running pods can't take: not of replicas, as long as there are some, and of the run policy.

    A queue's share is for as many pods as the job had when it was admitted.
    """
    queued = job.spec.scheduling.in_kueue
    free: Object = {"run_policy": RunPolicy(), "suspend": False, "update_strategy": "OnResume"}
    rollouts, workers = getattr(job.spec, names.ROLLOUTS, None), getattr(job.spec, names.WORKERS, None)
    if rollouts is not None:
        bounds = {"min_replicas": None, "max_replicas": None, "autoscale": False}
        free[names.ROLLOUTS] = rollouts.model_copy(
            update={**bounds, "replicas": rollouts.replicas if queued else min(rollouts.replicas, 1)}
        )
    if workers is not None:
        free[names.WORKERS] = workers.model_copy(
            update={"min_replicas": 1, "replicas": workers.replicas if queued else 1}
        )
    return _spec_hash(job.spec.model_copy(update=free))


def _spec_hash(spec: PlanSpec) -> str:
    """Defaults are left out: a field that a later release adds must not look like an edit."""
    return _hash(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def _with_hash(child: Object) -> Object:
    if ANNOTATION_HASH in child["metadata"].get("annotations", {}):
        return child
    return _annotated(child, {ANNOTATION_HASH: _hash(child)})


def _annotated(child: Object, annotations: dict[str, str]) -> Object:
    metadata = child["metadata"]
    return {**child, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


def _hash(tree: Object) -> str:
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]
