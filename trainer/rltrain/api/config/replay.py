"""Keys of plans that learn from a replay buffer."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rltrain.api.base import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rltrain.api.config.base import PlanConfig, SamplingConfig
from rltrain.api.config.multi_agent import ReplayMultiAgentConfig


class ReplayConfig(PlanConfig):
    """The buffer, and what is learnt from it."""

    train_batch_size: PositiveInt
    """Transitions in an update."""
    buffer_size: PositiveInt
    """Transitions that the replay buffer holds."""
    target_network_update_freq: NonNegativeInt
    """Steps (sampled ones, where there are any) between two updates of the target network; 0: with each update."""
    n_step: PositiveInt = 1
    """Rewards summed before bootstrapping."""
    prioritized_replay: bool
    """Sample in proportion to the TD error (Schaul et al. 2016)."""
    prioritized_replay_alpha: NonNegativeFloat = 0.6
    """Exponent of the priority."""
    prioritized_replay_beta: NonNegativeFloat = 0.4
    """Exponent of the importance weight."""
    prioritized_replay_eps: PositiveFloat = 1e-6
    """Added to |TD error| so that nothing has priority 0."""
    simple_optimizer: bool = False
    """Learn on one device even where the learner's machine has several GPUs."""
    fake_gpus: Annotated[bool, Field(alias="_fake_gpus")] = False
    """Learn with as many copies on the CPU as the learner's machine is said to have GPUs: to try what they would do."""
    before_learn_on_batch: str | None = None
    """`"package.module:function"` called with each train batch, returning the batch to learn from."""
    multiagent: ReplayMultiAgentConfig | None = None

    @property
    def lockstep(self) -> bool:
        """Whether several policies learn from the same env steps."""
        return self.multiagent is not None and self.multiagent.replay_mode == "lockstep"

    @model_validator(mode="after")
    def _steps_have_no_priorities(self) -> Self:
        if self.lockstep and self.prioritized_replay:
            raise ValueError(
                "prioritized_replay isn't for multiagent.replay_mode lockstep: a time step has no priority that all "
                "policies could agree on; set prioritized_replay to false, or replay_mode to independent"
            )
        return self


class OnlineReplayConfig(ReplayConfig, SamplingConfig):
    """The same, for plans whose workers fill the buffer."""

    learning_starts: NonNegativeInt
    """Transitions stored before the first update."""
    training_intensity: PositiveFloat | None = None
    """Trained transitions for each sampled one; null alternates one store with one update."""

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        if self.rollout_fragment_length < self.n_step:
            raise ValueError(
                f"rollout_fragment_length ({self.rollout_fragment_length}) must be at least n_step ({self.n_step})"
            )
        if max(self.train_batch_size, self.learning_starts) > self.buffer_size:
            raise ValueError(
                f"buffer_size ({self.buffer_size}) must hold train_batch_size ({self.train_batch_size}) "
                f"and learning_starts ({self.learning_starts}) transitions, or training would never start"
            )
        return self
