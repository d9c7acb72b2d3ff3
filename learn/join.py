"""`python -m learn.join PART... OUT`: datasets of the same columns as one."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def join(parts: Sequence[Path], out: Path) -> None:
    """Write the parts' rows, one part after the other; an episode's number may stand in several of them.

    Raises:
        KeyError: a part lacks a column of the first one.
    """
    opened = [np.load(part, allow_pickle=False) for part in parts]
    joined: dict[str, Any] = {name: np.concatenate([part[name] for part in opened]) for name in opened[0].files}
    np.savez_compressed(out, **joined)


if __name__ == "__main__":
    *given, written = map(Path, sys.argv[1:])
    join(given, written)
