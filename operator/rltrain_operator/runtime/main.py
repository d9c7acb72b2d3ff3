"""``rltrain-operator``: the operator's entry point."""

import asyncio
import gc
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from rltrain_operator.runtime.settings import Settings, parse

# kopf imports a Kubernetes client if one is merely installed, as the command line's is: 20 MiB for nothing.
_UNUSED: dict[str, Any] = {"kubernetes": None, "kubernetes_asyncio": None, "pykube": None}


async def _run(own: Settings) -> None:
    from rltrain_operator.runtime.api import Api
    from rltrain_operator.runtime.election import Alone, Lead, campaign
    from rltrain_operator.runtime.metrics import Metrics
    from rltrain_operator.runtime.operator import Operator

    # What the collector has to look at are the cache and the libraries, which stay: it looks more seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    metrics = Metrics()
    async with AsyncExitStack() as closing:
        api = Api(own.requests_per_second, count=metrics.requested)
        closing.push_async_callback(api.close)
        lead: Lead = Alone()
        if own.lease is not None:
            # A client of its own, so that no renewal waits behind other requests.
            other = Api(tries=1, timeout=own.lease_seconds / 3, count=metrics.requested)
            closing.push_async_callback(other.close)
            lead = campaign(other, own.lease, own.identity, own.lease_seconds)
        api.may_write = lead.leads
        await Operator(own, api, lead, metrics).run()


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop; 0 when it was told, 1 when something broke."""
    own = parse(sys.argv[1:] if argv is None else argv)
    sys.modules.update(_UNUSED)
    from rltrain_operator.runtime import logs
    from rltrain_operator.runtime.election import LeaseLost

    logs.set_up(own.log_format, own.log_level)
    try:
        asyncio.run(_run(own))
    except (Exception, BaseExceptionGroup) as error:
        logger = logging.getLogger(__name__)
        if isinstance(error, BaseExceptionGroup) and error.subgroup(LeaseLost):
            logger.critical("ended, so that no two act at once: %s", error.exceptions[0])
        else:
            logger.critical("the operator broke", exc_info=True)
        return 1
    return 0
