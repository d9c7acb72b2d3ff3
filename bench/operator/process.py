"""What a process has used so far, as the kernel counts it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
KIB_A_MB: Final = 1e6 / 1024


@dataclass(frozen=True)
class Used:
    """One look.

    Attributes:
        cpu: seconds of processor time.
        resident: megabytes (10^6 bytes) of memory now.
        peak: the most there were.
    """

    cpu: float
    resident: float
    peak: float


def used(pid: int) -> Used:
    """What the process has used, all its threads together."""
    process = Path(f"/proc/{pid}")
    # The program's name, in parentheses, may itself hold spaces.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    lines = (process / "status").read_text().splitlines()
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    megabytes = [int(sizes[name].split()[0]) / KIB_A_MB for name in ("VmRSS", "VmHWM")]
    return Used((int(fields[11]) + int(fields[12])) / TICKS, *megabytes)


def rest(pid: int, share: float = 0.2, seconds: float = 3.0, longest: float = 60.0) -> None:
    """Wait until the process has used no more than a share of a core for some seconds, at most for the longest."""
    end = time.monotonic() + longest
    while time.monotonic() < end:
        before = used(pid).cpu
        time.sleep(seconds)
        if used(pid).cpu - before <= share * seconds:
            return
