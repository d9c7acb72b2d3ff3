"""Storing experience and taking it out again."""

from typing import Any

from rltrain.flow import NOT_READY, LocalIterator, Signal, get_metrics
from rltrain.ops.ledger import IntensityLedger
from rltrain.ops.train import Trained
from rltrain.replay.buffer import Buffer
from rltrain.rollout.columns import BATCH_INDEXES, GENERATIONS
from rltrain.rollout.multi_agent_batch import AnyBatch


class StoreToReplayBuffer:
    """Add each batch to the buffer; once it is warm, storing earns credit for training."""

    def __init__(self, buffer: Buffer[Any], ledger: IntensityLedger) -> None:
        self._buffer = buffer
        self._ledger = ledger

    def __call__(self, batch: AnyBatch) -> AnyBatch:
        self._buffer.add(batch)
        if self._buffer.warm:
            self._ledger.earn(batch.count)
        return batch


def Replay(  # noqa: N802 - operators of the plan language are written like nouns
    buffer: Buffer[Any], train_batch_size: int, ledger: IntensityLedger | None = None
) -> LocalIterator[AnyBatch]:
    """Train batches; not ready while the buffer is cold or the ledger's credit doesn't cover one.

    Args:
        ledger: who pays for batches; None where they are free, because nothing is sampled.
    """

    def pull() -> AnyBatch | Signal:
        if ledger is not None and not ledger.due:
            return NOT_READY
        with get_metrics().timer("replay")():
            batch: AnyBatch | None = buffer.sample(train_batch_size)
        if batch is None:
            return NOT_READY
        if ledger is not None:
            ledger.spend(batch.steps)
        return batch

    return LocalIterator(pull)


class UpdatePriorities:
    """Give the trained transitions the priorities of their new TD errors."""

    def __init__(self, buffer: Buffer[Any]) -> None:
        self._buffer = buffer

    def __call__(self, trained: Trained) -> Trained:
        if trained.info.td_error is not None:
            batch = trained.batch
            dropped = self._buffer.update_priorities(batch[BATCH_INDEXES], batch[GENERATIONS], trained.info.td_error)
            get_metrics().counters["num_stale_priorities"] += dropped
        return trained
