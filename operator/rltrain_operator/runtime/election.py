"""Standing for leader: looks at the Lease, takes and renews it, and lets it go at the end."""

import asyncio
import logging
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from rltrain_operator.runtime.api import Api, ApiError, Unreachable
from rltrain_operator.runtime.kinds import LEASE
from rltrain_operator.runtime.leader import Candidate, Holding, Terms

logger = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another may lead from now on: this process must end."""


class Lead(Protocol):
    """Whether this process may act."""

    leading: asyncio.Event
    """Set once it may."""
    heard: asyncio.Event
    """Set once it knows who may."""

    def leads(self) -> bool:
        """Whether it may at this very moment."""

    async def run(self) -> None:
        """Get and keep the lead. Raises LeaseLost once it is lost."""

    async def release(self) -> None:
        """Let another lead at once, as the last thing."""


class Alone:
    """Nobody else is there: it leads."""

    def __init__(self) -> None:
        self.leading, self.heard = asyncio.Event(), asyncio.Event()
        self.leading.set()
        self.heard.set()

    def leads(self) -> bool:
        return True

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        return


class Election:
    """Leads while it holds a Lease.

    Args:
        api: a client of its own, so that a renewal never waits behind other requests.
        namespace, name: of the Lease.
        candidate: this process.
    """

    def __init__(self, api: Api, namespace: str, name: str, candidate: Candidate) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._candidate = candidate
        self._version: str | None = None
        self._trouble = ""
        self._over = False
        self._writing = asyncio.Lock()
        self.leading, self.heard = asyncio.Event(), asyncio.Event()

    def leads(self) -> bool:
        return self._candidate.leads(_now())

    async def run(self) -> None:
        while True:
            async with self._writing:
                if self._over:
                    return
                renewed = await self.turn()
            terms = self._candidate.terms
            await asyncio.sleep(terms.renew if renewed else terms.look)

    async def release(self) -> None:
        self._over = True
        async with self._writing:
            if not self.leads():
                return
            farewell = self._candidate.farewell(datetime.now(UTC))
            self._candidate = replace(self._candidate, renewed_at=None)
            try:
                async with asyncio.timeout(self._candidate.terms.look):
                    await self._write(farewell)
                logger.info("the lead is free", extra=self._about())
            except (ApiError, Unreachable, TimeoutError) as error:
                logger.warning("the lead stays taken until its Lease ends: %s", error, extra=self._about())

    async def turn(self) -> bool:
        """One try to get or keep the lead; whether it was renewed."""
        renewed_at, terms = self._candidate.renewed_at, self._candidate.terms
        try:
            async with asyncio.timeout_at((_now() if renewed_at is None else renewed_at) + terms.deadline):
                renewed, trouble = await self._stand(), ""
                self.heard.set()
        except (ApiError, Unreachable, TimeoutError) as error:
            renewed, trouble = False, str(error) or self._trouble or "no answer in time"
        if trouble and trouble != self._trouble:
            logger.warning("the Lease can't be read or written: %s", trouble, extra=self._about())
        self._trouble = trouble
        if self.leads():
            if not self.leading.is_set():
                logger.info("this process leads", extra=self._about())
            self.leading.set()
        elif self.leading.is_set():
            holder = self._candidate.seen.holder if self._candidate.seen else ""
            raise LeaseLost(trouble or f"{holder or 'nobody'} holds the Lease")
        return renewed

    async def _stand(self) -> bool:
        for _again in range(2):
            if self._version is None or not self.leads():
                await self._look()
            if not self._candidate.may_take(_now()):
                return False
            sent_at, wish = _now(), self._candidate.wish(datetime.now(UTC))
            try:
                await self._write(wish)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
                # Somebody was faster, changed something else in it, or deleted it: what it says now decides.
                await self._look()
                continue
            self._candidate = self._candidate.took(wish, sent_at)
            return True
        return False

    async def _look(self) -> None:
        try:
            found = await self._api.get(LEASE, self._namespace, self._name)
        except ApiError as error:
            if error.code != 404:
                raise
            self._version = None
            self._candidate = self._candidate.saw(None, _now())
        else:
            self._version = found["metadata"]["resourceVersion"]
            self._candidate = self._candidate.saw(Holding.read(found.get("spec") or {}), _now())

    async def _write(self, holding: Holding) -> None:
        metadata = {"namespace": self._namespace, "name": self._name}
        made = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": holding.spec()}
        if self._version is None:
            written = await self._api.create(LEASE, made)
        else:
            metadata["resourceVersion"] = self._version
            written = await self._api.replace(LEASE, made)
        self._version = written["metadata"]["resourceVersion"]

    def _about(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self._name}", "identity": self._candidate.identity}


def _now() -> float:
    return asyncio.get_running_loop().time()


def campaign(api: Api, lease: tuple[str, str], pod: str, seconds: int) -> Election:
    """An election for the lease of this namespace and name; another process in the same pod is another candidate."""
    return Election(api, *lease, Candidate(f"{pod}_{secrets.token_hex(4)}", Terms(seconds)))
