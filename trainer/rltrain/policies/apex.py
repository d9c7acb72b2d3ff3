"""Ape-X's policy (Horgan et al. 2018): DQN's, each worker exploring to another degree and judging what it sees."""

from typing import Final

import torch
from gymnasium import spaces

from rltrain.api.config import ApexClassicConfig
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.dqn import DQNPolicy
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array

_BASE: Final = 0.4
_ALPHA: Final = 7
_TARGET: Final = "target."


def worker_epsilon(worker: int, workers: int) -> float | None:
    """Chance of a random action (section 4.1): 0.4^(1 + 7 (i - 1) / (N - 1)) for worker i of N, counted from 1.

    Args:
        worker: 0 is the driver's own, which doesn't explore.
        workers: how many there are beside it.

    Returns:
        None without workers: the driver samples by itself then, and explores as DQN does.
    """
    if workers == 0:
        return None
    if worker == 0:
        return 0.0
    return float(_BASE ** (1 + _ALPHA * (worker - 1) / max(workers - 1, 1)))


class ApexPolicy(DQNPolicy):
    """DQN's policy with a constant epsilon; its weights hold the target network, which priorities need.

    Args:
        workers: how many there are beside the driver's own.
    """

    def __init__(
        self,
        config: ApexClassicConfig,
        obs_space: Space,
        action_space: spaces.Discrete,
        seeds: Seeds,
        device: str = "cpu",
        workers: int = 0,
    ) -> None:
        self._worker = seeds.worker
        self._constant = None if config.noisy else worker_epsilon(seeds.worker, workers)
        self._judges = config.worker_side_prioritization and config.prioritized_replay
        super().__init__(config, obs_space, action_space, seeds, device)
        self._judge = self._function(self._first_errors)

    def set_global_step(self, env_steps: int) -> None:
        super().set_global_step(env_steps)
        if self._constant is not None:
            self._epsilon = self._constant

    def set_workers(self, workers: int) -> None:
        self._constant = None if self._config.noisy else worker_epsilon(self._worker, workers)
        self.set_global_step(self.global_step)

    def td_error(self, batch: Batch) -> Array | None:
        if not self._judges:
            return None
        columns = (batch[name] for name in (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.DISCOUNTS))
        rows = [as_tensor(column, self.device) for column in columns]
        errors: Array = self._judge(self._flat.vector, self._target_flat.vector, *rows)[0].cpu().numpy()
        return errors

    @torch.no_grad()
    def _first_errors(
        self,
        vector: torch.Tensor,
        target: torch.Tensor,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        next_obs: torch.Tensor,
        discounts: torch.Tensor,
    ) -> tuple[torch.Tensor]:
        """What an update would call the rows' errors, float32 (n,); noisy layers are at their means."""
        with self._target_flat.at(target):
            self._target.set_noise(None)
            target_next = self._target(next_obs)
        with self._flat.at(vector):
            self._network.set_noise(None)
            return (self._errors(obs, actions, rewards, next_obs, discounts, target_next)[1],)

    def get_weights(self) -> dict[str, Array]:
        weights = super().get_weights()
        if self._judges:
            weights |= {f"{_TARGET}{name}": value for name, value in self._target_flat.get().items()}
        return weights

    def set_weights(self, weights: dict[str, Array]) -> None:
        """Takes weights without those of a target network too, as checkpoints keep them."""
        target = {name.removeprefix(_TARGET): value for name, value in weights.items() if name.startswith(_TARGET)}
        super().set_weights({name: value for name, value in weights.items() if not name.startswith(_TARGET)})
        if target:
            self._target_flat.set(target)
