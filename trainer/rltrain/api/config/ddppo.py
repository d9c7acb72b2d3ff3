"""DD-PPO (Wijmans et al. 2020): PPO whose ranks sample, learn and average gradients by themselves."""

from typing import Annotated

from pydantic import Field

from rltrain.api.base import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt
from rltrain.api.config.base import GradClip, SamplingConfig, Schedule


class DDPPOConfig(SamplingConfig):
    """Options of the DD-PPO plan. A rank's batch is `rollout_fragment_length * num_envs_per_worker` steps."""

    lr: PositiveFloat = 5e-5
    grad_clip: GradClip = None
    rollout_fragment_length: PositiveInt = 100
    num_envs_per_worker: PositiveInt = 5
    timesteps_per_iteration: PositiveInt = 1
    min_time_s_per_reporting: NonNegativeFloat = 0.0
    sgd_minibatch_size: PositiveInt = 50
    """Steps in a rank's minibatch; the effective one is this times the ranks."""
    num_sgd_iter: PositiveInt = 10
    """Epochs over each batch."""
    clip_param: PositiveFloat = 0.3
    """PPO's clip range (Schulman et al. 2017, eq. 7)."""
    vf_clip_param: PositiveFloat = 10.0
    """How far a value may move from its prediction at sampling."""
    vf_loss_coeff: NonNegativeFloat = 1.0
    """Weight of the value loss."""
    entropy_coeff: NonNegativeFloat = 0.0
    """Weight of the entropy bonus."""
    entropy_coeff_schedule: Schedule | None = None
    """Entropy weight over global env steps; replaces `entropy_coeff`."""
    lambda_: Annotated[Fraction, Field(alias="lambda")] = 1.0
    """GAE's lambda (Schulman et al. 2016, eq. 16)."""
    kl_coeff: Annotated[float, Field(ge=0, le=0)] = 0.0
    """Only 0: ranks adapting a KL coefficient on their own would drift apart."""
    vf_share_layers: bool = False
    """One network for policy and value."""
    sync_frac: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the ranks that must have their fragment before the others stop at what they have, though at a quarter of
    theirs at least; 1: nobody does. The paper has 0.6, for environments of very unequal speed."""
    keep_local_weights_in_sync: bool = True
    """Copy rank 0's weights to the driver after each iteration."""
