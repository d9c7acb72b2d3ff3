"""The replay buffer that a config asks for."""

from functools import partial

from rltrain.api.config import OnlineReplayConfig, R2D2Config, ReplayConfig
from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.sequences import SequenceBuffer, SequenceShape


def make_buffer(config: ReplayConfig, seed: int, name: str = "replay") -> ReplayBuffer:
    """An empty buffer. `seed` is of its sampling, `name` what errors call it."""
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
        learning_starts=config.learning_starts if isinstance(config, OnlineReplayConfig) else 0,
        seed=seed,
        name=name,
    )
