"""Datasets as compressed .npz files."""

from pathlib import Path
from typing import Any

import numpy as np

from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import AnyBatch, MultiAgentBatch


def write_npz(path: Path, recorded: AnyBatch) -> None:
    """Write what `record` gives; of several agents each column as `agent/column`. Raises OSError."""
    temporary = path.with_name(f".{path.name}.npz")
    columns: dict[str, Any] = {}
    if isinstance(recorded, MultiAgentBatch):
        for agent, rows in recorded.policies.items():
            columns |= {f"{agent}/{name}": column for name, column in rows.columns.items()}
    else:
        assert isinstance(recorded, Batch)
        columns |= recorded.columns
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(temporary, **columns)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
