"""Conservative Q-learning (Kumar et al. 2020) on soft actor-critic, from a dataset alone."""

from typing import Annotated

from pydantic import Field

from rltrain.api.base import FiniteFloat, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rltrain.api.config.base import GradClip, ModelConfig
from rltrain.api.config.replay import ReplayConfig
from rltrain.api.config.sac import SoftConfig


class CQLConfig(SoftConfig, ReplayConfig):
    """Options of the CQL plan. An iteration of `bc_iters` is an update."""

    input: Annotated[str, Field(min_length=1, examples=["expert.npz"])]
    """The dataset: an .npz file, or the folder of a Minari dataset; in a pod relative to the code or the volume."""
    lr: PositiveFloat = 3e-4
    grad_clip: GradClip = None
    timesteps_per_iteration: PositiveInt = 25_600
    min_time_s_per_reporting: NonNegativeFloat = 1.0
    model: ModelConfig = ModelConfig(fcnet_hiddens=(256, 256), fcnet_activation="relu")
    train_batch_size: PositiveInt = 256
    buffer_size: PositiveInt = 1_000_000
    target_network_update_freq: NonNegativeInt = 0
    prioritized_replay: bool = False
    bc_iters: NonNegativeInt = 20_000
    """Updates at the start in which the actor imitates the data's actions."""
    temperature: PositiveFloat = 1.0
    """Of the penalty's log-sum-exp."""
    num_actions: PositiveInt = 10
    """Actions drawn for the penalty from each of: uniform, the policy, the policy at the next observation."""
    min_q_weight: NonNegativeFloat = 5.0
    """Weight of the penalty."""
    lagrangian: bool = False
    """Learn a factor of the penalty that holds it at `lagrangian_thresh` (eq. 30)."""
    lagrangian_thresh: FiniteFloat = 5.0
    """What the penalty is held at."""
