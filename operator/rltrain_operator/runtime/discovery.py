"""What the cluster has to start pods together, by the APIs that it serves, and where its API server is."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from rltrain_operator.render import NONE_SERVED, Served, gang, workload
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.kinds import ENDPOINT_SLICE, KUEUE, VOLCANO

logger = logging.getLogger(__name__)

SECONDS = 10.0
"""Shortest time between two looks, however many jobs ask for one."""


@dataclass
class Discovery:
    """What was found last.

    Attributes:
        finds_api_server: look for the API server too.
        served: what there is.
        has_kueue: set while Kueue's API is there.
    """

    api: Api
    finds_api_server: bool = False
    served: Served = NONE_SERVED
    has_kueue: asyncio.Event = field(default_factory=asyncio.Event)
    _looked: float = float("-inf")

    async def look(self) -> None:
        """Ask the API server, in one request, or in two."""
        self._looked = asyncio.get_running_loop().time()
        groups = await self.api.groups()
        found = Served(
            kueue=_best(workload.VERSIONS, groups.get(KUEUE, ())),
            volcano=VOLCANO.version in groups.get(VOLCANO.group, ()),
            pod_groups=_best(gang.VERSIONS, groups.get(gang.KUBERNETES, ())),
            api_server=await self._api_server() if self.finds_api_server else (),
        )
        if found != self.served:
            volcano = "yes" if found.volcano else "none"
            words = "schedulers: Kueue %s, Volcano %s, Kubernetes' own PodGroups %s"
            logger.info(words, found.kueue or "none", volcano, found.pod_groups or "none")
        self.served = found
        if found.kueue is None:
            self.has_kueue.clear()
        else:
            self.has_kueue.set()

    async def _api_server(self) -> tuple[tuple[str, int], ...]:
        found = await self.api.get(ENDPOINT_SLICE, "default", "kubernetes")
        addresses = [address for endpoint in found["endpoints"] for address in endpoint["addresses"]]
        return tuple(sorted((address, int(port["port"])) for address in addresses for port in found["ports"]))

    async def look_again(self) -> None:
        """Look, unless that was done a moment ago."""
        if asyncio.get_running_loop().time() - self._looked >= SECONDS:
            await self.look()


def _best(known: Iterable[str], served: Iterable[str]) -> str | None:
    return next((version for version in known if version in served), None)
