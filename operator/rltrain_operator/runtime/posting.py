"""Events about jobs, each told once."""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rltrain.api import names
from rltrain_operator.plan import Event, JobView
from rltrain_operator.render import Object
from rltrain_operator.runtime.api import Api, ApiError, Unreachable
from rltrain_operator.runtime.kinds import EVENT_TO_POST

logger = logging.getLogger(__name__)

SILENCE_SECONDS = 600.0
"""The same reason for the same job isn't told again within this time, should it come and go."""
MOST_REMEMBERED = 10_000
LONGEST_NOTE = 1024


@dataclass
class Poster:
    """Posts events and remembers which."""

    api: Api
    identity: str
    _told: OrderedDict[tuple[str, str], float] = field(default_factory=OrderedDict)

    async def post(self, view: JobView, events: tuple[Event, ...]) -> None:
        """Tell what is new. An event that can't be posted is no reason to hold anything up."""
        now = asyncio.get_running_loop().time()
        for event in events:
            mark = (view.uid, event.reason)
            if now - self._told.get(mark, float("-inf")) < SILENCE_SECONDS:
                continue
            try:
                await self.api.create(EVENT_TO_POST, _object(view, event, self.identity))
            except (ApiError, Unreachable) as error:
                logger.warning("an event wasn't posted: %s", error, extra={"job": f"{view.namespace}/{view.name}"})
                return
            self._told[mark] = now
            while len(self._told) > MOST_REMEMBERED:
                self._told.popitem(last=False)


def _object(view: JobView, event: Event, identity: str) -> Object:
    note = event.message if len(event.message) <= LONGEST_NOTE else f"{event.message[: LONGEST_NOTE - 4]} ..."
    return {
        "apiVersion": EVENT_TO_POST.api_version,
        "kind": EVENT_TO_POST.name,
        "metadata": {"generateName": f"{view.name}-", "namespace": view.namespace},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": event.kind,
        "reason": event.reason,
        "note": note,
        "action": "Reconcile",
        "reportingController": f"{names.GROUP}/operator",
        "reportingInstance": identity,
        "regarding": {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": view.name,
            "namespace": view.namespace,
            "uid": view.uid,
        },
    }
