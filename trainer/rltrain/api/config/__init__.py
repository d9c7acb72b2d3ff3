"""``spec.config``: one frozen model for each plan, with the keys that RLlib users know."""

from rltrain.api.config.apex import ApexClassicConfig, ApexConfig
from rltrain.api.config.base import ModelConfig, PlanConfig, SamplingConfig
from rltrain.api.config.cql import CQLConfig
from rltrain.api.config.ddppo import DDPPOConfig
from rltrain.api.config.dqn import DQNConfig, ExplorationConfig, QLearningConfig
from rltrain.api.config.multi_agent import MultiAgentConfig, ReplayMultiAgentConfig
from rltrain.api.config.off_policy import OffPolicyConfig, OffPolicyDQNConfig
from rltrain.api.config.r2d2 import R2D2Config, RecurrentModelConfig
from rltrain.api.config.replay import OnlineReplayConfig, ReplayConfig
from rltrain.api.config.sac import SACConfig, SoftConfig

__all__ = [
    "ApexClassicConfig",
    "ApexConfig",
    "CQLConfig",
    "DDPPOConfig",
    "DQNConfig",
    "ExplorationConfig",
    "ModelConfig",
    "MultiAgentConfig",
    "OffPolicyConfig",
    "OffPolicyDQNConfig",
    "OnlineReplayConfig",
    "PlanConfig",
    "QLearningConfig",
    "R2D2Config",
    "RecurrentModelConfig",
    "ReplayConfig",
    "ReplayMultiAgentConfig",
    "SACConfig",
    "SamplingConfig",
    "SoftConfig",
]
