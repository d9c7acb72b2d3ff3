"""The headless Service that gives the job's pods their names."""

from rltrain.api import names
from rltrain_operator.render.context import Context, Object


def service(ctx: Context) -> Object:
    """``<job>-head-0.<job>`` must resolve before the head is ready: nodes wait for it by name."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.LABEL_JOB_UID: ctx.uid},
        "ports": [{"name": "gcs", "port": names.GCS_PORT}],
    }
    return ctx.object("v1", "Service", ctx.name, spec=spec)
