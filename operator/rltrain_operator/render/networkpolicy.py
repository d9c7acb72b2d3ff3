"""Only the job's own pods reach its pods: Ray's token travels in clear text."""

from rltrain.api import names
from rltrain_operator.render.context import Context, Object


def network_policy(ctx: Context) -> Object:
    own = {"podSelector": {"matchLabels": {names.LABEL_JOB_UID: ctx.uid}}}
    spec = {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]}
    return ctx.object("networking.k8s.io/v1", "NetworkPolicy", ctx.name, spec=spec)
