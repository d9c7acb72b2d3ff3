"""Liveness and readiness: not only that this task runs, but that the work goes on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

LONGEST_LAG = 10.0
LONGEST_QUEUE_AGE = 120.0
LONGEST_WATCH_LAG = 180.0


@dataclass
class Health:
    """What the probes look at.

    Attributes:
        queue_age: seconds that the oldest due key has waited.
        watch_is_behind: whether the watches lack what the last list showed.
        ready: set once everything was listed and the watches run.
    """

    queue_age: Callable[[], float]
    watch_is_behind: Callable[[], bool]
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    reason_not_ready: str = "the first listing isn't done"
    _lag: float = 0.0
    _behind_since: float | None = None

    async def measure(self) -> None:
        """Keep an eye on the event loop and the watches."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(1.0)
            now = loop.time()
            self._lag = max(now - before - 1.0, 0.9 * self._lag)
            if not self.watch_is_behind():
                self._behind_since = None
            elif self._behind_since is None:
                self._behind_since = now

    def problems(self) -> list[str]:
        """What is wrong with the operator itself."""
        found = []
        if self._lag > LONGEST_LAG:
            found.append(f"the event loop lags {self._lag:.1f} s")
        if (age := self.queue_age()) > LONGEST_QUEUE_AGE:
            found.append(f"a job has waited {age:.0f} s for its visit")
        if (behind := self.watch_lag()) > LONGEST_WATCH_LAG:
            found.append(f"the watches have been behind for {behind:.0f} s")
        return found

    def watch_lag(self) -> float:
        """Seconds that the watches have been behind."""
        return 0.0 if self._behind_since is None else asyncio.get_running_loop().time() - self._behind_since

    async def serve(self, host: str, port: int, registry: CollectorRegistry) -> web.AppRunner:
        """Answer probes and Prometheus until the runner is cleaned up."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", make_aiohttp_handler(registry))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        return runner

    async def _healthz(self, _: web.Request) -> web.Response:
        problems = self.problems()
        return web.Response(status=500 if problems else 200, text="\n".join(problems) or "ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        if not self.ready.is_set():
            return web.Response(status=503, text=self.reason_not_ready)
        return web.Response(text="ok")
