"""A user's own functions."""

from rltrain.rollout.batch import Batch


def doubled(batch: Batch) -> Batch:
    return Batch.concat([batch, batch])


def forgotten(batch: Batch) -> None: ...
