"""``spec.config``: one frozen model for each plan, with the keys that RLlib users know."""

from rltrain.api.config.base import ModelConfig, PlanConfig
from rltrain.api.config.ddppo import DDPPOConfig
from rltrain.api.config.dqn import DQNConfig, ExplorationConfig

__all__ = ["DDPPOConfig", "DQNConfig", "ExplorationConfig", "ModelConfig", "PlanConfig"]
