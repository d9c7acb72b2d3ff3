"""Only the job's own pods reach its pods: Ray's token travels in clear text. What they reach, the platform says."""

from collections.abc import Iterator

from rltrain.api import names
from rltrain_operator.render.context import Context, Object

_DNS: Object = {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}
"""To any address: what answers may be a pod, or a process of the node."""


def network_policy(ctx: Context) -> Object:
    own: Object = {"podSelector": {"matchLabels": {names.LABEL_JOB_UID: ctx.uid}}}
    spec: Object = {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]}
    if ctx.config.egress is not None:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [{"to": [own]}, _DNS, *_api_server(ctx), *ctx.config.egress]
    return ctx.object("networking.k8s.io/v1", "NetworkPolicy", ctx.name, spec=spec)


def _api_server(ctx: Context) -> Iterator[Object]:
    """Not its Service's address, for policies are about packets that have left that behind."""
    for address, port in ctx.served.api_server:
        block = {"cidr": f"{address}/{128 if ':' in address else 32}"}
        yield {"to": [{"ipBlock": block}], "ports": [{"protocol": "TCP", "port": port}]}
