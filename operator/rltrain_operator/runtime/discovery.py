"""Which schedulers the cluster has, by the APIs that it serves."""

import asyncio
import logging
from dataclasses import dataclass, field

from rltrain_operator.render import NONE_SERVED, Served
from rltrain_operator.render.workload import VERSIONS
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.kinds import KUEUE, POD_GROUP

logger = logging.getLogger(__name__)

SECONDS = 10.0
"""Shortest time between two looks, however many jobs ask for one."""


@dataclass
class Discovery:
    """What was found last.

    Attributes:
        served: the schedulers.
        has_kueue: set while Kueue's API is there.
    """

    api: Api
    served: Served = NONE_SERVED
    has_kueue: asyncio.Event = field(default_factory=asyncio.Event)
    _looked: float = float("-inf")

    async def look(self) -> None:
        """Ask the API server, in one request."""
        self._looked = asyncio.get_running_loop().time()
        groups = await self.api.groups()
        kueue = next((version for version in VERSIONS if version in groups.get(KUEUE, ())), None)
        found = Served(kueue, POD_GROUP.version in groups.get(POD_GROUP.group, ()))
        if found != self.served:
            logger.info("schedulers: Kueue %s, Volcano %s", kueue or "none", "yes" if found.volcano else "none")
        self.served = found
        if kueue is None:
            self.has_kueue.clear()
        else:
            self.has_kueue.set()

    async def look_again(self) -> None:
        """Look, unless that was done a moment ago."""
        if asyncio.get_running_loop().time() - self._looked >= SECONDS:
            await self.look()
