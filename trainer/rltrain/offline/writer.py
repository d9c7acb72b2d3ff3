"""Datasets as compressed .npz files."""

from pathlib import Path
from typing import Any

import numpy as np

from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch

WRITTEN = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.TERMINATEDS, c.TRUNCATEDS, c.EPS_ID)


def write_npz(path: Path, batch: Batch) -> None:
    """Write a batch whose actions are the environment's. Raises OSError."""
    temporary = path.with_name(f".{path.name}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        columns: dict[str, Any] = {name: batch[name] for name in WRITTEN}
        np.savez_compressed(temporary, **columns)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
