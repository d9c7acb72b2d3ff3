"""R2D2 (Kapturowski et al. 2019): DQN with a recurrent network that learns from replayed sequences."""

from typing import Literal, Self

from pydantic import model_validator

from rltrain.api.base import Fraction, NonNegativeInt, PositiveFloat, PositiveInt
from rltrain.api.config.base import ModelConfig, Widths
from rltrain.api.config.dqn import QLearningConfig


class RecurrentModelConfig(ModelConfig):
    """The same with a recurrent layer before the heads."""

    fcnet_hiddens: Widths = (256,)
    recurrent: Literal["LSTM", "GRU"] = "LSTM"
    """Kind of the recurrent layer."""
    lstm_cell_size: PositiveInt = 256
    """Width of the recurrent layer, of either kind."""
    max_seq_len: PositiveInt = 20
    """Steps that are learnt of a sequence."""


class R2D2Config(QLearningConfig):
    """Options of the OffPolicy plan with R2D2. A sequence has `burn_in + model.max_seq_len` steps."""

    policy: Literal["R2D2"]
    """The algorithm."""
    compile: Literal["Auto", "Never"] = "Auto"
    lr: PositiveFloat = 1e-4
    gamma: Fraction = 0.997
    adam_epsilon: PositiveFloat = 1e-3
    rollout_fragment_length: PositiveInt = 4
    model: RecurrentModelConfig = RecurrentModelConfig()
    train_batch_size: PositiveInt = 1000
    """Steps in an update, burn-in included: as many whole sequences as fit, and at least one."""
    training_intensity: PositiveFloat = 150.0
    buffer_size: PositiveInt = 100_000
    """Sequences that the replay buffer holds."""
    prioritized_replay: bool = False
    target_network_update_freq: NonNegativeInt = 2500
    burn_in: NonNegativeInt = 0
    """Steps before those that are learnt, which only bring the recurrent state up to date (section 3)."""
    zero_init_states: bool = True
    """Begin replayed sequences with a state of zeros rather than with the one that was acted with."""
    use_h_function: bool = True
    """Learn values on the scale of h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x (section 2.3)."""
    h_function_epsilon: PositiveFloat = 1e-3
    """Epsilon of h."""

    @property
    def sequence_length(self) -> int:
        """Steps of a sequence."""
        return self.burn_in + self.model.max_seq_len

    @property
    def sequences_per_batch(self) -> int:
        """Sequences in an update."""
        return max(1, self.train_batch_size // self.sequence_length)

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        if self.n_step != 1:
            raise ValueError(f"n_step ({self.n_step}) must be 1 with policy R2D2, which learns from one-step returns")
        if self.lockstep:
            raise ValueError(
                "multiagent.replay_mode lockstep isn't for policy R2D2, whose sequences end where each agent's own "
                "steps do: set it to independent"
            )
        if self.sequences_per_batch > self.buffer_size:
            raise ValueError(
                f"buffer_size ({self.buffer_size}) must hold the {self.sequences_per_batch} sequences of "
                f"{self.sequence_length} steps that train_batch_size ({self.train_batch_size}) has room for, "
                "or training would never start"
            )
        return self
