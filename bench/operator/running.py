"""The operator's own process, outside the cluster, and the programs of the control plane beside it."""

import os
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.operator.audit import Audit
from bench.operator.contenders import PORT, Contender
from bench.operator.process import Used, used
from testbed.fakenodes import kubeconfig
from testbed.layout import AUDIT_LOG

READY_SECONDS: Final = 120.0
QUIET_SECONDS: Final = 3.0
QUIET_CPU: Final = 0.03
"""Share of a core below which a process rests."""


class Broken(Exception):
    """The contender can't be measured; the message says why."""


class Operator:
    """A contender that runs.

    Attributes:
        audit: its requests.
    """

    def __init__(self, contender: Contender, log: Path) -> None:
        self._contender = contender
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.audit = Audit(AUDIT_LOG, contender.name)

    def start(self) -> float:
        """Start it; seconds until it says that it is ready."""
        began = time.monotonic()
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._contender.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "KUBECONFIG": kubeconfig(self._contender.name)},
                start_new_session=True,  # Ctrl-C is ours, and then we end it
            )
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() - began > READY_SECONDS:
                raise Broken(f"{self._contender.name} isn't ready; see {self._log}")
            time.sleep(0.02)
        return time.monotonic() - began

    def stop(self) -> None:
        """End it as Kubernetes would, at once if that takes too long."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    @property
    def used(self) -> Used:
        assert self._process is not None, "it doesn't run"
        return used(self._process.pid)

    def settle(self, seconds: float, since: Counter[str]) -> float:
        """Wait until it neither asks anything nor computes for a while, at most so long; when that while began.

        Args:
            seconds: the longest to wait.
            since: its requests are added here.
        """
        end = time.monotonic() + seconds
        last = self.used.cpu
        rest = time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.25)
            asked, cpu, now = self.audit.news(), self.used.cpu, time.monotonic()
            since.update(asked)
            if asked or cpu - last > 0.25:
                rest, last = now, cpu
            elif now - rest >= QUIET_SECONDS:
                if cpu - last <= QUIET_CPU * (now - rest):
                    return rest
                rest, last = now, cpu
        return time.monotonic()

    def _ready(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
        return False
