"""What Q-learning policies share: a target network and epsilon-greedy exploration."""

import copy
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from rltrain.api.config import QLearningConfig
from rltrain.models.flat import FlatParameters
from rltrain.policies.base import interpolate
from rltrain.policies.torch_policy import Seeds, TorchPolicy
from rltrain.state import Array, State

N = TypeVar("N", bound=nn.Module)


class QLearningPolicy(TorchPolicy, Generic[N]):
    """Base of policies over a Discrete action space; a subclass gives the loss.

    Args:
        make: makes the network for a number of actions.
    """

    _network: N

    def __init__(
        self,
        config: QLearningConfig,
        make: Callable[[int], N],
        action_space: spaces.Discrete,
        seeds: Seeds,
        device: str,
    ) -> None:
        self._actions = int(action_space.n)
        exploration = config.exploration_config
        self._epsilons = (
            (0.0, exploration.initial_epsilon),
            (float(exploration.epsilon_timesteps), exploration.final_epsilon),
        )
        self._epsilon = 0.0

        def build() -> N:
            self._network = make(self._actions)
            return self._network

        super().__init__(config, build, seeds, device, config.adam_epsilon)
        self._target = copy.deepcopy(self._network)
        self._target.requires_grad_(False)
        self._target_flat = FlatParameters(self._target)
        self._learning_rate = torch.zeros((), device=self.device)

    def update_target(self) -> None:
        self._target_flat.vector.copy_(self._flat.vector)

    def set_global_step(self, env_steps: int) -> None:
        super().set_global_step(env_steps)
        self._epsilon = interpolate(self._epsilons, env_steps)

    def exploration_state(self) -> dict[str, float]:
        return {"epsilon": self._epsilon}

    def learned_state(self) -> State:
        return {**super().learned_state(), "target": self._target_flat.get()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._target_flat.set(state["target"])

    def _explored(self, actions: Array) -> Array:
        """Actions, int64 (n,), some of them replaced by random ones, in place: each with the chance epsilon."""
        if self._epsilon > 0:
            random = self._rng.random(len(actions)) < self._epsilon
            count = np.count_nonzero(random)
            if count:
                actions[random] = self._rng.integers(self._actions, size=count)
        return actions
