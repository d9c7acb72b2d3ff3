"""What the cluster has to start pods together, by the APIs that it serves."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from rltrain_operator.render import NONE_SERVED, Served, gang, workload
from rltrain_operator.runtime.api import Api
from rltrain_operator.runtime.kinds import KUEUE, VOLCANO

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
        found = Served(
            kueue=_best(workload.VERSIONS, groups.get(KUEUE, ())),
            volcano=VOLCANO.version in groups.get(VOLCANO.group, ()),
            pod_groups=_best(gang.VERSIONS, groups.get(gang.KUBERNETES, ())),
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

    async def look_again(self) -> None:
        """Look, unless that was done a moment ago."""
        if asyncio.get_running_loop().time() - self._looked >= SECONDS:
            await self.look()


def _best(known: Iterable[str], served: Iterable[str]) -> str | None:
    return next((version for version in known if version in served), None)
