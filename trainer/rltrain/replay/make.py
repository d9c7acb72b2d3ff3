"""The replay buffer that a config asks for."""

import zlib
from functools import partial
from typing import Any

import numpy as np

from rltrain.api.config import OnlineReplayConfig, R2D2Config, ReplayConfig
from rltrain.models.agents import Roster
from rltrain.replay.buffer import Buffer, ReplayBuffer
from rltrain.replay.multi_agent import IndependentBuffers, LockstepBuffer
from rltrain.replay.sequences import SequenceBuffer, SequenceShape


def make_buffer(config: ReplayConfig, seed: int, roster: Roster | None = None, name: str = "replay") -> Buffer[Any]:
    """An empty buffer.

    Args:
        seed: of its sampling.
        roster: of the policies that fill it, where there are several agents.
        name: what errors call it.
    """
    starts = config.learning_starts if isinstance(config, OnlineReplayConfig) else 0
    if roster is None:
        return _make(config, seed, starts, name)
    if config.lockstep:
        widths = {policy: len(roster.agents[policy]) for policy in roster.to_train}
        return LockstepBuffer(config.buffer_size, widths, starts, seed)
    seeds = {policy: np.random.SeedSequence([seed, zlib.crc32(policy.encode())]) for policy in roster.to_train}
    buffers = {
        policy: _make(config, int(own.generate_state(1)[0]), 0, f"{name} of {policy}") for policy, own in seeds.items()
    }
    return IndependentBuffers(buffers, starts)


def _make(config: ReplayConfig, seed: int, learning_starts: int, name: str) -> ReplayBuffer:
    make: type[ReplayBuffer] | partial[SequenceBuffer] = ReplayBuffer
    if isinstance(config, R2D2Config):
        shape = SequenceShape(config.burn_in, config.model.max_seq_len, states=not config.zero_init_states)
        make = partial(SequenceBuffer, shape)
    return make(
        config.buffer_size,
        alpha=config.prioritized_replay_alpha,
        beta=config.prioritized_replay_beta,
        eps=config.prioritized_replay_eps,
        prioritized=config.prioritized_replay,
        learning_starts=learning_starts,
        seed=seed,
        name=name,
    )
