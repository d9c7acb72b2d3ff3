"""An event loop whose time stands still while there is work and jumps over waits."""

import asyncio
from collections.abc import Awaitable, Callable


class FastLoop(asyncio.SelectorEventLoop):
    """Time passes only when nothing is ready, and then all at once."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(body: Callable[[FastLoop], Awaitable[None]]) -> None:
    """Run a test in a fresh loop."""
    loop = FastLoop()

    async def main() -> None:
        await body(loop)

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
