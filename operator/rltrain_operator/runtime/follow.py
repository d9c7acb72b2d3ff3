"""Following what belongs to the jobs: their Jobs, and Kueue's Workloads from when the cluster has them.

kopf takes a millisecond for an event, three times as long as all of this, and the Jobs' are most of all events.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from rltrain_operator.render import Object
from rltrain_operator.runtime.api import Api, ApiError, Unreachable
from rltrain_operator.runtime.cache import Key, Store, job_key
from rltrain_operator.runtime.discovery import Discovery
from rltrain_operator.runtime.kinds import Kind, workloads
from rltrain_operator.runtime.resync import OWN_CHILDREN

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
"""Before the next try after a watch has ended badly."""
BREATH_SECONDS = 0.2
"""Between two watches, should a server end them at once."""
_GONE = 410


@dataclass
class Follower:
    """Keeps a store up to date, in one namespace or in all.

    Attributes:
        due: called with the key of each job of which something has changed.
    """

    api: Api
    store: Store
    due: Callable[[Key], None]
    namespace: str | None = None

    async def run(self, kind: Kind) -> None:
        """For ever."""
        while True:
            try:
                await self._follow(kind)
            except (ApiError, Unreachable) as error:
                await self._rest(kind, error)

    async def run_workloads(self, discovery: Discovery) -> None:
        """For ever, while the cluster has Kueue, in the version that it has."""
        while True:
            await discovery.has_kueue.wait()
            version = discovery.served.kueue
            assert version is not None
            try:
                await self._follow(workloads(version))
            except (ApiError, Unreachable) as error:
                await self._rest(workloads(version), error)
                await _look_again(discovery)

    async def _rest(self, kind: Kind, error: Exception) -> None:
        """Wait a moment after trouble; what the server has forgotten is none."""
        if not isinstance(error, ApiError) or error.code != _GONE:
            logger.warning("%s can't be followed: %s", kind.plural, error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self, kind: Kind) -> None:
        """List, then watch from there, for ever.

        Raises:
            ApiError: the server's refusal; 410 if it doesn't know any more what came after the last event.
            Unreachable: it is away, or silent.
        """
        version = await self._list(kind)
        while True:
            async with self.api.watch(kind, self.namespace, version, labels=OWN_CHILDREN) as events:
                async for event in events:
                    found = event["object"]
                    if event["type"] == "ERROR":
                        raise ApiError(int(found.get("code") or 0), str(found.get("reason")), str(found.get("message")))
                    version = found["metadata"]["resourceVersion"]
                    self.store.take(event["type"], found)
                    if event["type"] != "BOOKMARK":
                        self._tell(found)
            await asyncio.sleep(BREATH_SECONDS)

    async def _list(self, kind: Kind) -> str:
        """Bring the store in line with what there is; the list's version."""
        before = {
            key: version
            for key, version in self.store.versions().items()
            if self.namespace is None or key[0] == self.namespace
        }
        listed: list[Object] = []
        version = ""
        async for page in self.api.pages(kind, self.namespace, labels=OWN_CHILDREN):
            # Slim at once: the whole of some thousand Jobs would be more memory than the operator has other use for.
            listed += [self.store.slim(made) for made in page.items]
            version = page.version
        for changed in self.store.replace(listed, before, watched=True):
            self._tell(changed)
        return version

    def _tell(self, changed: Object) -> None:
        if (key := job_key(changed)) is not None:
            self.due(key)


async def _look_again(discovery: Discovery) -> None:
    try:
        await discovery.look_again()
    except (ApiError, Unreachable) as error:
        logger.warning("the served APIs can't be read: %s", error)
