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
from rltrain.api.config.base import GradClip, ModelConfig, PlanConfig, Widths


class ExplorationConfig(ConfigModel):
    """Epsilon-greedy, linear in global env steps."""

    initial_epsilon: Fraction = 1.0
    """Chance of a random action at the start."""
    final_epsilon: Fraction = 0.02
    """Chance of a random action after `epsilon_timesteps`."""
    epsilon_timesteps: PositiveInt = 10_000
    """Env steps over which epsilon falls."""


class DQNConfig(PlanConfig):
    """Options of the DQN plan."""

    lr: PositiveFloat = 5e-4
    grad_clip: GradClip = 40.0
    rollout_fragment_length: PositiveInt = 4
    num_envs_per_worker: PositiveInt = 1
    timesteps_per_iteration: PositiveInt = 1000
    min_time_s_per_reporting: NonNegativeFloat = 1.0
    model: ModelConfig = ModelConfig(fcnet_hiddens=(256,), fcnet_activation="tanh")
    adam_epsilon: PositiveFloat = 1e-8
    """Adam's epsilon."""
    train_batch_size: PositiveInt = 32
    """Transitions in an update."""
    buffer_size: PositiveInt = 50_000
    """Transitions that the replay buffer holds."""
    learning_starts: NonNegativeInt = 1000
    """Transitions stored before the first update."""
    training_intensity: PositiveFloat | None = None
    """Trained transitions for each sampled one; null alternates one store with one update."""
    target_network_update_freq: PositiveInt = 500
    """Sampled env steps between two copies to the target network."""
    double_q: bool = True
    """Choose the next action with the online network (van Hasselt et al. 2016)."""
    dueling: bool = True
    """Separate value and advantage streams (Wang et al. 2016)."""
    hiddens: Widths = (256,)
    """Widths of the hidden layers of each head."""
    n_step: PositiveInt = 1
    """Rewards summed before bootstrapping."""
    num_atoms: PositiveInt = 1
    """Atoms of the return distribution (Bellemare et al. 2017); 1 is the plain expectation."""
    v_min: FiniteFloat = -10.0
    """Lowest atom."""
    v_max: FiniteFloat = 10.0
    """Highest atom."""
    noisy: bool = False
    """Noisy linear layers in the heads (Fortunato et al. 2018) instead of epsilon."""
    sigma0: PositiveFloat = 0.5
    """Initial noise of the noisy layers."""
    prioritized_replay: bool = True
    """Sample in proportion to the TD error (Schaul et al. 2016)."""
    prioritized_replay_alpha: NonNegativeFloat = 0.6
    """Exponent of the priority."""
    prioritized_replay_beta: NonNegativeFloat = 0.4
    """Exponent of the importance weight."""
    prioritized_replay_eps: PositiveFloat = 1e-6
    """Added to |TD error| so that nothing has priority 0."""
    exploration_config: ExplorationConfig = ExplorationConfig()
    """How actions are explored; unused when `noisy`."""
    before_learn_on_batch: str | None = None
    """`"package.module:function"` called with each train batch, returning the batch to learn from."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rollout_fragment_length < self.n_step:
            raise ValueError(
                f"rollout_fragment_length ({self.rollout_fragment_length}) must be at least n_step ({self.n_step})"
            )
        if self.v_min >= self.v_max:
            raise ValueError(f"v_min ({self.v_min}) must be below v_max ({self.v_max})")
        if max(self.train_batch_size, self.learning_starts) > self.buffer_size:
            raise ValueError(
                f"buffer_size ({self.buffer_size}) must hold train_batch_size ({self.train_batch_size}) "
                f"and learning_starts ({self.learning_starts}) transitions, or training would never start"
            )
        return self
