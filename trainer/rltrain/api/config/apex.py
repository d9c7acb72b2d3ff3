"""Ape-X (Horgan et al. 2018): DQN with many workers, sharded replay and a learner that runs beside them."""

from typing import Self

from pydantic import model_validator

from rltrain.api.base import ConfigModel, NonNegativeFloat, NonNegativeInt, PositiveInt
from rltrain.api.config.dqn import DQNConfig


class ApexOptimizer(ConfigModel):
    """How Ape-X's parts work together."""

    num_replay_buffer_shards: PositiveInt = 4
    """Actors that hold the replay buffer, each its share of `buffer_size` and `learning_starts`."""
    max_weight_sync_delay: PositiveInt = 400
    """Env steps of a worker after which it gets new weights, if the learner has any."""
    debug: bool = False
    """Report the statistics of every shard rather than of the first one."""


class ApexClassicConfig(DQNConfig):
    """Options of the first Ape-X: storing and learning run as fast as each can."""

    rollout_fragment_length: PositiveInt = 50
    timesteps_per_iteration: PositiveInt = 25_000
    min_time_s_per_reporting: NonNegativeFloat = 30.0
    train_batch_size: PositiveInt = 512
    buffer_size: PositiveInt = 2_000_000
    learning_starts: NonNegativeInt = 50_000
    target_network_update_freq: NonNegativeInt = 500_000
    """Trained steps between two copies to the target network."""
    n_step: PositiveInt = 3
    worker_side_prioritization: bool = True
    """Workers compute the first priorities of what they sample."""
    optimizer: ApexOptimizer = ApexOptimizer()
    """Shards and weights."""

    @model_validator(mode="after")
    def _shards_can_start(self) -> Self:
        shards = self.optimizer.num_replay_buffer_shards
        if self.train_batch_size > self.buffer_size // shards:
            raise ValueError(
                f"buffer_size ({self.buffer_size}) in {shards} shards must leave each room for train_batch_size "
                f"({self.train_batch_size}), which comes from one of them: raise buffer_size, or lower "
                "optimizer.num_replay_buffer_shards"
            )
        return self


class ApexConfig(ApexClassicConfig):
    """Options of the Apex plan."""

    replay_buffer_shards_colocated_with_driver: bool | None = None
    """Whether the shards are in the head's pod: what `spec.replay` says by itself, so it needn't be given."""
