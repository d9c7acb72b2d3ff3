"""``rltrain-operator``: the operator's entry point."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any

from rltrain_operator.runtime.settings import Settings, parse

# kopf imports a Kubernetes client if one is merely installed, as the command line's is: 20 MiB for nothing.
_UNUSED: dict[str, Any] = {"kubernetes": None, "kubernetes_asyncio": None, "pykube": None}


async def _run(own: Settings) -> None:
    from rltrain_operator.runtime.api import Api
    from rltrain_operator.runtime.operator import Operator

    api = Api(own.requests_per_second)
    try:
        await Operator(own, api).run()
    finally:
        await api.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop; 0 when it was told, 1 when something broke."""
    own = parse(sys.argv[1:] if argv is None else argv)
    sys.modules.update(_UNUSED)
    from rltrain_operator.runtime import logs

    logs.set_up(own.log_format, own.log_level)
    try:
        asyncio.run(_run(own))
    except (Exception, BaseExceptionGroup):
        logging.getLogger(__name__).critical("the operator broke", exc_info=True)
        return 1
    return 0
