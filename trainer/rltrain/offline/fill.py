"""A replay buffer filled from a dataset."""

import logging
import sys

from rltrain.api.config import CQLConfig
from rltrain.api.errors import InvalidManifest, Problem
from rltrain.offline.readers import load_dataset
from rltrain.replay.buffer import Buffer
from rltrain.rollout.batch import Batch
from rltrain.rollout.worker import RolloutWorker

log = logging.getLogger(__name__)


def fill_from_dataset(buffer: Buffer[Batch], worker: RolloutWorker, config: CQLConfig) -> None:
    """Put the config's dataset into an empty buffer, as the worker's policy learns from it; says what it found.

    Raises:
        InvalidManifest: there is none, it is empty or unfit, or of a size with which training would never begin.
        MissingExtra: what reads it isn't installed.
    """
    dataset = load_dataset(config.input, worker.observation_space, worker.action_space)
    count = dataset.batch.count
    if count > config.buffer_size:
        message = f"is {config.buffer_size}, but the dataset has {count} transitions"
        raise InvalidManifest([Problem("spec.config.buffer_size", message, f"set it to {count} or more")])
    if count < config.train_batch_size:
        message = f"is {config.train_batch_size}, but the dataset has only {count} transitions"
        raise InvalidManifest([Problem("spec.config.train_batch_size", message, f"set it to {count} or less")])
    print(f"dataset {config.input}: {dataset.summary}", file=sys.stderr, flush=True)
    for warning in dataset.warnings:
        log.warning("dataset %s: %s", config.input, warning)
    buffer.add(worker.policy.postprocess(dataset.batch))
