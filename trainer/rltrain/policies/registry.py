"""Which policy a plan trains, and the spaces it takes."""

from collections.abc import Sequence

from gymnasium import spaces

from rltrain.api.config import ApexClassicConfig, CQLConfig, DDPPOConfig, DQNConfig, PlanConfig, R2D2Config, SACConfig
from rltrain.api.errors import UnsupportedSpace
from rltrain.models.spaces import OBSERVATION_SPACES, Space, check_filters
from rltrain.policies.base import Policy
from rltrain.policies.replicated import Copy, replicated
from rltrain.policies.torch_policy import Seeds

ACTION_SPACES: dict[str, tuple[type[Space], ...]] = {
    "Apex": (spaces.Discrete,),
    "ApexClassic": (spaces.Discrete,),
    "CQL": (spaces.Box,),
    "DDPPO": (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box),
    "DQN": (spaces.Discrete,),
    "OffPolicy with policy DQN": (spaces.Discrete,),
    "OffPolicy with policy R2D2": (spaces.Discrete,),
    "OffPolicy with policy SAC": (spaces.Box, spaces.Discrete),
}
"""Action spaces that each plan takes; where a plan leaves the algorithm open, with each of them."""
_BOUNDED = (SACConfig, CQLConfig)
"""Options of policies whose actions fill their bounds, which must so be finite."""


def check_spaces(plan: str, config: PlanConfig, obs_space: Space, action_space: Space) -> None:
    """Refuse what a plan's policy can't handle.

    Raises:
        UnsupportedSpace: with the space, the plan and the plans that do take it, or what to do about its bounds.
    """
    if not isinstance(obs_space, OBSERVATION_SPACES):
        names = ", ".join(kind.__name__ for kind in OBSERVATION_SPACES)
        raise UnsupportedSpace(
            f"plan {plan} can't take the observation space {obs_space}: all plans need one of {names}, or a Dict or "
            "Tuple of these; flatten it with a wrapper (gymnasium.wrappers.FlattenObservation)"
        )
    check_filters(obs_space, config.model.conv_filters)
    policy = getattr(config, "policy", None)
    name = plan if policy is None else f"{plan} with policy {policy}"
    if not isinstance(action_space, ACTION_SPACES[name]):
        others = [name for name, kinds in ACTION_SPACES.items() if isinstance(action_space, kinds)]
        remedy = f"plans that take it: {', '.join(others)}" if others else "no plan takes it"
        raise UnsupportedSpace(f"plan {name} can't take the action space {action_space}; {remedy}")
    if isinstance(config, _BOUNDED) and isinstance(action_space, spaces.Box) and not action_space.is_bounded():
        raise UnsupportedSpace(
            f"plan {name} can't take the action space {action_space}: its actions fill their bounds, and these are "
            "infinite; give the environment finite ones with a wrapper (gymnasium.wrappers.RescaleAction, or "
            "TransformAction with an action_space), or use plan DDPPO"
        )


def make_policy(
    plan: str,
    config: PlanConfig,
    obs_space: Space,
    action_space: Space,
    seed: int,
    worker: int = 0,
    devices: Sequence[str] = ("cpu",),
    workers: int = 0,
) -> Policy:
    """Make a plan's policy. The first weights depend on `seed` alone, the random streams on `worker` too.

    Args:
        worker: whose policy it is, counted from 1; 0 is the driver's own.
        devices: torch devices; over several of them it learns data-parallel, which on-policy algorithms don't.
        workers: how many there are beside the driver's own.

    Raises:
        UnsupportedSpace: the policy can't handle a space.
    """
    check_spaces(plan, config, obs_space, action_space)
    copies = [_make(plan, config, obs_space, action_space, Seeds(seed, worker), each, workers) for each in devices]
    return copies[0] if len(copies) == 1 else replicated(copies)


def _make(
    plan: str,
    config: PlanConfig,
    obs_space: Space,
    action_space: Space,
    seeds: Seeds,
    device: str,
    workers: int,
) -> Copy:
    if isinstance(config, ApexClassicConfig) and isinstance(action_space, spaces.Discrete):
        from rltrain.policies.apex import ApexPolicy

        return ApexPolicy(config, obs_space, action_space, seeds, device, workers)
    if isinstance(config, DQNConfig) and isinstance(action_space, spaces.Discrete):
        from rltrain.policies.dqn import DQNPolicy

        return DQNPolicy(config, obs_space, action_space, seeds, device)
    if isinstance(config, R2D2Config) and isinstance(action_space, spaces.Discrete):
        from rltrain.policies.r2d2 import R2D2Policy

        return R2D2Policy(config, obs_space, action_space, seeds, device)
    if isinstance(config, DDPPOConfig):
        from rltrain.policies.ppo import PPOPolicy

        return PPOPolicy(config, obs_space, action_space, seeds, device)
    if isinstance(config, SACConfig) and isinstance(action_space, spaces.Box | spaces.Discrete):
        from rltrain.policies.sac import SACPolicy

        return SACPolicy(config, obs_space, action_space, seeds, device)
    if isinstance(config, CQLConfig) and isinstance(action_space, spaces.Box):
        from rltrain.policies.cql import CQLPolicy

        return CQLPolicy(config, obs_space, action_space, seeds, device)
    raise TypeError(f"plan {plan} can't be given a {type(config).__name__}")
