"""Soft actor-critic (Haarnoja et al. 2018b), continuous and discrete (Christodoulou 2019)."""

from typing import Literal

from rltrain.api.base import (
    ConfigModel,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from rltrain.api.config.base import GradClip, ModelConfig
from rltrain.api.config.replay import OnlineReplayConfig


class SoftConfig(ConfigModel):
    """What all soft actor-critics share. Two critics, always; actor and critics have networks of the same widths."""

    tau: Fraction = 5e-3
    """Share of the critics that an update of the target network takes over."""
    initial_alpha: PositiveFloat = 1.0
    """Entropy's weight at the start; it is learnt from there (Haarnoja et al. 2018b, eq. 18)."""
    target_entropy: FiniteFloat | None = None
    """Entropy that alpha steers to; null: minus the action's components, or 0.98 ln n for n discrete actions."""


class SACConfig(SoftConfig, OnlineReplayConfig):
    """Options of the OffPolicy plan with SAC."""

    policy: Literal["SAC"]
    """The algorithm."""
    lr: PositiveFloat = 3e-4
    grad_clip: GradClip = None
    rollout_fragment_length: PositiveInt = 1
    num_envs_per_worker: PositiveInt = 1
    timesteps_per_iteration: PositiveInt = 100
    min_time_s_per_reporting: NonNegativeFloat = 1.0
    model: ModelConfig = ModelConfig(fcnet_hiddens=(256, 256), fcnet_activation="relu")
    train_batch_size: PositiveInt = 256
    buffer_size: PositiveInt = 1_000_000
    target_network_update_freq: NonNegativeInt = 0
    prioritized_replay: bool = False
    learning_starts: NonNegativeInt = 1500
    """Transitions stored before the first update; until then actions are uniformly random."""
