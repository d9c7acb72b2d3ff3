"""DQN (Mnih et al. 2015) with the extensions of Rainbow (Hessel et al. 2018) as options."""

from typing import Self

from pydantic import model_validator

from rltrain.api.base import (
    ConfigModel,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from rltrain.api.config.base import GradClip, ModelConfig, Widths
from rltrain.api.config.replay import OnlineReplayConfig


class ExplorationConfig(ConfigModel):
    """Epsilon-greedy, linear in global env steps."""

    initial_epsilon: Fraction = 1.0
    """Chance of a random action at the start."""
    final_epsilon: Fraction = 0.02
    """Chance of a random action after `epsilon_timesteps`."""
    epsilon_timesteps: PositiveInt = 10_000
    """Env steps over which epsilon falls."""


class QLearningConfig(OnlineReplayConfig):
    """What all Q-learning over discrete actions shares."""

    grad_clip: GradClip = 40.0
    num_envs_per_worker: PositiveInt = 1
    timesteps_per_iteration: PositiveInt = 1000
    min_time_s_per_reporting: NonNegativeFloat = 1.0
    learning_starts: NonNegativeInt = 1000
    adam_epsilon: PositiveFloat
    """Adam's epsilon."""
    double_q: bool = True
    """Choose the next action with the online network (van Hasselt et al. 2016)."""
    dueling: bool = True
    """Separate value and advantage streams (Wang et al. 2016)."""
    hiddens: Widths = (256,)
    """Widths of the hidden layers of each head."""
    exploration_config: ExplorationConfig = ExplorationConfig()
    """How actions are explored."""


class DQNConfig(QLearningConfig):
    """Options of the DQN plan."""

    lr: PositiveFloat = 5e-4
    rollout_fragment_length: PositiveInt = 4
    model: ModelConfig = ModelConfig(fcnet_hiddens=(256,), fcnet_activation="tanh")
    train_batch_size: PositiveInt = 32
    buffer_size: PositiveInt = 50_000
    prioritized_replay: bool = True
    adam_epsilon: PositiveFloat = 1e-8
    target_network_update_freq: NonNegativeInt = 500
    num_atoms: PositiveInt = 1
    """Atoms of the return distribution (Bellemare et al. 2017); 1 is the plain expectation."""
    v_min: FiniteFloat = -10.0
    """Lowest atom."""
    v_max: FiniteFloat = 10.0
    """Highest atom."""
    noisy: bool = False
    """Noisy linear layers in the heads (Fortunato et al. 2018) instead of epsilon, which is unused then."""
    sigma0: PositiveFloat = 0.5
    """Initial noise of the noisy layers."""

    @model_validator(mode="after")
    def _atoms_in_order(self) -> Self:
        if self.v_min >= self.v_max:
            raise ValueError(f"v_min ({self.v_min}) must be below v_max ({self.v_max})")
        return self
