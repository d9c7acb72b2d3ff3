"""Where compiled code lies: below the user's cache folder, by what it was made from."""

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from rltrain.compiled.function import Signature


def folder() -> Path:
    """`$RLTRAIN_CACHE/compiled`, by default below `~/.cache/rltrain`."""
    chosen = os.environ.get("RLTRAIN_CACHE")
    root = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rltrain"
    return root / "compiled"


def path_of(recipe: str, name: str, signature: Signature) -> Path:
    """The file of one function for one signature.

    Args:
        recipe: what, beside versions and processor, the function follows from.
    """
    return folder() / f"{name}-{_digest([_machine(), recipe, name, str(signature)])}.pt2"


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)};{part}".encode())
    return digest.hexdigest()[:32]


def sources(*files: Path) -> str:
    """A digest of code."""
    return _digest(path.read_text() for path in files)


@cache
def _machine() -> str:
    """What compiles, and the processor it compiles for."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith(("flags", "Features"))), "")
    compiler = sources(*sorted(Path(__file__).parent.glob("*.py")))
    return _digest([torch.__version__, compiler, str(torch.get_num_threads()), flags])
