"""Which policy a plan trains, and the spaces it takes."""

from gymnasium import spaces

from rltrain.api.config import DDPPOConfig, DQNConfig, PlanConfig
from rltrain.api.errors import UnsupportedSpace
from rltrain.models.spaces import OBSERVATION_SPACES, Space
from rltrain.policies.base import Policy
from rltrain.policies.torch_policy import Seeds

ACTION_SPACES: dict[str, tuple[type[Space], ...]] = {
    "DDPPO": (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box),
    "DQN": (spaces.Discrete,),
}
"""Action spaces that each plan's policy takes."""


def check_spaces(plan: str, obs_space: Space, action_space: Space) -> None:
    """Refuse what a plan's policy can't handle.

    Raises:
        UnsupportedSpace: with the space, the plan and the plans that do take it.
    """
    if not isinstance(obs_space, OBSERVATION_SPACES):
        names = ", ".join(kind.__name__ for kind in OBSERVATION_SPACES)
        raise UnsupportedSpace(
            f"plan {plan} can't take the observation space {obs_space}: all plans need one of {names}; "
            "flatten it with a wrapper (gymnasium.wrappers.FlattenObservation)"
        )
    if not isinstance(action_space, ACTION_SPACES[plan]):
        others = [name for name, kinds in ACTION_SPACES.items() if isinstance(action_space, kinds)]
        remedy = f"plans that take it: {', '.join(others)}" if others else "no plan takes it"
        raise UnsupportedSpace(f"plan {plan} can't take the action space {action_space}; {remedy}")


def make_policy(
    plan: str,
    config: PlanConfig,
    obs_space: Space,
    action_space: Space,
    seed: int,
    worker: int = 0,
    device: str = "cpu",
) -> Policy:
    """Make a plan's policy. The first weights depend on `seed` alone, the random streams on `worker` too.

    Raises:
        UnsupportedSpace: the policy can't handle a space.
    """
    check_spaces(plan, obs_space, action_space)
    seeds = Seeds(seed, worker)
    if isinstance(config, DQNConfig) and isinstance(action_space, spaces.Discrete):
        from rltrain.policies.dqn import DQNPolicy

        return DQNPolicy(config, obs_space, action_space, seeds, device)
    if isinstance(config, DDPPOConfig):
        from rltrain.policies.ppo import PPOPolicy

        return PPOPolicy(config, obs_space, action_space, seeds, device)
    raise TypeError(f"plan {plan} can't be given a {type(config).__name__}")
