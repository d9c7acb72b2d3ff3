"""A user's own functions."""

from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import MultiAgentBatch


def doubled(batch: Batch) -> Batch:
    return Batch.concat([batch, batch])


def forgotten(batch: Batch) -> None: ...


SEEN: list[dict[str, int]] = []
"""Rows of each policy in each train batch that `watched` was given."""


def watched(batch: MultiAgentBatch) -> MultiAgentBatch:
    SEEN.append({name: rows.count for name, rows in batch.policies.items()})
    return batch
