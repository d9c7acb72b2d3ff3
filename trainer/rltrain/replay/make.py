"""The replay buffer that a config asks for."""

from rltrain.api.config import OnlineReplayConfig, ReplayConfig
from rltrain.replay.buffer import ReplayBuffer


def make_buffer(config: ReplayConfig, seed: int) -> ReplayBuffer:
    """An empty buffer. `seed` is of its sampling."""
    return ReplayBuffer(
        config.buffer_size,
        alpha=config.prioritized_replay_alpha,
        beta=config.prioritized_replay_beta,
        eps=config.prioritized_replay_eps,
        prioritized=config.prioritized_replay,
        learning_starts=config.learning_starts if isinstance(config, OnlineReplayConfig) else 0,
        seed=seed,
    )
