"""A replay buffer filled from a dataset."""

import logging
import sys
from typing import Any

from rltrain.api.config import CQLConfig
from rltrain.api.errors import InvalidManifest, Problem
from rltrain.offline.readers import load_agents, load_dataset
from rltrain.replay.buffer import Buffer
from rltrain.rollout.multi_agent_batch import AnyBatch, MultiAgentBatch
from rltrain.rollout.worker import RolloutWorker

log = logging.getLogger(__name__)


def fill_from_dataset(buffer: Buffer[Any], worker: RolloutWorker, config: CQLConfig) -> None:
    """Put the config's dataset into an empty buffer, as the worker's policy learns from it; says what it found.

    Raises:
        InvalidManifest: there is none, it is empty or unfit, or of a size with which training would never begin.
        MissingExtra: what reads it isn't installed.
    """
    dataset = (
        load_dataset(config.input, worker.observation_space, worker.action_space)
        if worker.roster is None
        else load_agents(config.input, worker.roster, by_step=config.lockstep)
    )
    held = _held(dataset.batch, config)
    most, least = max(held, key=held.__getitem__), min(held, key=held.__getitem__)
    if held[most] > config.buffer_size:
        message = f"is {config.buffer_size}, but the dataset has {held[most]} {most}"
        raise InvalidManifest([Problem("spec.config.buffer_size", message, f"set it to {held[most]} or more")])
    if held[least] < config.train_batch_size:
        message = f"is {config.train_batch_size}, but the dataset has only {held[least]} {least}"
        raise InvalidManifest([Problem("spec.config.train_batch_size", message, f"set it to {held[least]} or less")])
    print(f"dataset {config.input}: {dataset.summary}", file=sys.stderr, flush=True)
    for warning in dataset.warnings:
        log.warning("dataset %s: %s", config.input, warning)
    buffer.add(worker.policy.postprocess(dataset.batch))


def _held(batch: AnyBatch, config: CQLConfig) -> dict[str, int]:
    """How much each buffer is to hold, by what that is."""
    if not isinstance(batch, MultiAgentBatch):
        return {"transitions": batch.count}
    if config.lockstep:
        return {"env steps": batch.count}
    return {f"transitions of policy {name}": rows.count for name, rows in batch.policies.items()}
