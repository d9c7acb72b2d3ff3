"""Following Kueue's Workloads, from when the cluster has them: kopf watches only what is there when it starts."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from rltrain_operator.runtime.api import Api, ApiError, Unreachable
from rltrain_operator.runtime.cache import Key, Store, key_of
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.kinds import Kind, workloads
from rltrain_operator.runtime.resync import OWN_CHILDREN
from rltrain_operator.runtime.watch import take

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
"""Before the next try after a watch has ended badly."""


@dataclass
class Follower:
    """Keeps a store of Workloads up to date, in one namespace or in all.

    Attributes:
        due: called with the key of each job whose Workload has changed; the two have one name.
    """

    api: Api
    discovery: Discovery
    store: Store
    due: Callable[[Key], None]
    namespace: str | None = None

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.discovery.has_kueue.wait()
            version = self.discovery.served.kueue
            assert version is not None
            try:
                await self._follow(workloads(version))
            except (ApiError, Unreachable) as error:
                logger.warning("Workloads can't be followed: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                await self._look_again()

    async def _look_again(self) -> None:
        try:
            await self.discovery.look_again()
        except (ApiError, Unreachable) as error:
            logger.warning("the served APIs can't be read: %s", error)

    async def _follow(self, kind: Kind) -> None:
        """One watch until the server ends it; what happened before it began is listed."""
        async with self.api.watch(kind, self.namespace, labels=OWN_CHILDREN) as events:
            for key in await self.list(kind):
                self.due(key)
            async for event in events:
                found = event["object"]
                if event["type"] == "ERROR":
                    raise ApiError(int(found.get("code") or 0), str(found.get("reason")), str(found.get("message")))
                take(self.store, event["type"], found)
                self.due(key_of(found))

    async def list(self, kind: Kind) -> set[Key]:
        """Keys of those that weren't known as they are."""
        before = {
            key: version
            for key, version in self.store.versions().items()
            if self.namespace is None or key[0] == self.namespace
        }
        listed = [made async for made in self.api.list(kind, self.namespace, labels=OWN_CHILDREN)]
        return self.store.replace(listed, before)
