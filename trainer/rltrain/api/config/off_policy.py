"""The OffPolicy plan's options: one model for each algorithm, told apart by `policy`."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rltrain.api.config.dqn import DQNConfig
from rltrain.api.config.r2d2 import R2D2Config
from rltrain.api.config.sac import SACConfig


class OffPolicyDQNConfig(DQNConfig):
    """Options of the OffPolicy plan with DQN."""

    policy: Literal["DQN"]
    """The algorithm."""


OffPolicyConfig: TypeAlias = Annotated[SACConfig | OffPolicyDQNConfig | R2D2Config, Field(discriminator="policy")]
