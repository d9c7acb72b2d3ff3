"""Which policy a plan trains, and the spaces it takes."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rltrain.api.config import (
    ApexClassicConfig,
    CQLConfig,
    DDPPOConfig,
    DQNConfig,
    PlanConfig,
    R2D2Config,
    ReplayConfig,
    SACConfig,
)
from rltrain.api.errors import UnsupportedSpace
from rltrain.models.agents import AgentSpaces, Roster, make_roster, refuse_block
from rltrain.models.spaces import OBSERVATION_SPACES, Space, check_filters
from rltrain.policies.base import Learned, Policy
from rltrain.policies.group import PolicyGroup
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
        InvalidManifest: see `make_roster`, or there are policies of several agents for one.
    """
    roster = roster_of(config, obs_space, action_space)
    if roster is None:
        refuse_block(config)
        _check_spaces(plan, config, obs_space, action_space)
        return
    for name in roster.agents:
        _check_spaces(plan, config, roster.obs_spaces[name], roster.action_spaces[name])


def roster_of(config: PlanConfig, obs_space: Space, action_space: Space) -> Roster | None:
    """Who acts by which policy; None where there is one agent. Raises InvalidManifest, see `make_roster`."""
    if isinstance(obs_space, AgentSpaces) and isinstance(action_space, AgentSpaces):
        return make_roster(config, obs_space, action_space)
    return None


def for_each_policy(config: PlanConfig) -> PlanConfig:
    """A plan's options as those of a policy in a group, which has one agent's spaces."""
    return config.model_copy(update={"multiagent": None})


def _check_spaces(plan: str, config: PlanConfig, obs_space: Space, action_space: Space) -> None:
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
) -> Learned[Any]:
    """Make a plan's policy, or its group of policies where the spaces are those of several agents.

    The first weights depend on `seed` alone, and on the policy's name in a group; the random streams on `worker` too.

    Args:
        worker: whose policy it is, counted from 1; 0 is the driver's own.
        devices: torch devices; over several of them it learns data-parallel, which on-policy algorithms don't.
        workers: how many there are beside the driver's own.

    Raises:
        UnsupportedSpace, InvalidManifest: see `check_spaces`.
    """
    check_spaces(plan, config, obs_space, action_space)
    roster = roster_of(config, obs_space, action_space)
    if roster is None:
        return _make(plan, config, obs_space, action_space, Seeds(seed, worker), devices, workers)
    policies = {
        name: _make(
            plan,
            for_each_policy(config),
            roster.obs_spaces[name],
            roster.action_spaces[name],
            Seeds(_seed_of(seed, name), worker),
            devices,
            workers,
        )
        for name in roster.agents
    }
    return PolicyGroup(policies, roster, by_step=isinstance(config, ReplayConfig) and config.lockstep)


def _seed_of(seed: int, policy: str) -> int:
    """A policy's own, whichever others there are."""
    return int(np.random.SeedSequence([seed, zlib.crc32(policy.encode())]).generate_state(1)[0])


def _make(
    plan: str,
    config: PlanConfig,
    obs_space: Space,
    action_space: Space,
    seeds: Seeds,
    devices: Sequence[str],
    workers: int,
) -> Policy:
    """One policy, with a copy on each device."""
    copies = [_make_copy(plan, config, obs_space, action_space, seeds, each, workers) for each in devices]
    return copies[0] if len(copies) == 1 else replicated(copies)


def _make_copy(
    plan: str, config: PlanConfig, obs_space: Space, action_space: Space, seeds: Seeds, device: str, workers: int
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
