"""The headless Service that gives the head its name."""

from rltrain.api import names
from rltrain_operator.render.context import Context, Object


def service(ctx: Context) -> Object:
    """``<job>-head-0.<job>`` must resolve before the head is ready: nodes wait for it by name.

    Nobody calls the others by name, and with each of their pods that comes or goes Kubernetes would write the whole
    list of addresses anew, twice.
    """
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.LABEL_JOB_UID: ctx.uid, names.LABEL_ROLE: names.HEAD},
        "ports": [{"name": "gcs", "port": names.GCS_PORT}],
    }
    return ctx.object("v1", "Service", ctx.name, spec=spec)
