"""The volume claim for checkpoints, which outlives the job."""

from rltrain.api import names
from rltrain.api.seen import claim_name
from rltrain_operator.render.context import Context, Object

DEFAULT_SIZE = "10Gi"


def claim(ctx: Context) -> Object | None:
    """None when the user names a claim.

    No owner and no UID: namesakes share the claim, each with a folder named by its UID.
    """
    storage = ctx.job.spec.checkpoint.storage
    if storage.claim is not None:
        return None
    labels = {key: value for key, value in ctx.labels().items() if key != names.LABEL_JOB_UID}
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size or DEFAULT_SIZE}},
    }
    if storage.storage_class_name is not None:
        spec["storageClassName"] = storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(ctx.name), "namespace": ctx.namespace, "labels": labels},
        "spec": spec,
    }
