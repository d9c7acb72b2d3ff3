"""DQN (Mnih et al. 2015) with the options of Rainbow (Hessel et al. 2018)."""

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch.nn import functional

from rltrain.api.config import DQNConfig
from rltrain.models.adam import Moments
from rltrain.models.flat import gradient
from rltrain.models.q_network import QNetwork
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.base import LearnInfo
from rltrain.policies.n_step import n_step
from rltrain.policies.q_learning import QLearningPolicy
from rltrain.policies.sharing import ALL, alone
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array

_STATS = ("loss", "grad_norm", "mean_q", "min_q", "max_q", "mean_td_error")


class DQNPolicy(QLearningPolicy[QNetwork]):
    """Q network, target network and epsilon-greedy or noisy exploration over a Discrete action space."""

    def __init__(
        self, config: DQNConfig, obs_space: Space, action_space: spaces.Discrete, seeds: Seeds, device: str = "cpu"
    ) -> None:
        self._config = config
        super().__init__(config, partial(QNetwork, config, obs_space), action_space, seeds, device)
        step = (config.v_max - config.v_min) / max(config.num_atoms - 1, 1)
        self._atoms = config.v_min + step * torch.arange(config.num_atoms, device=self.device)
        self._best = self._function(self._best_actions)
        self._learn = self._function(self._update)

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        noise = self._noise() if explore else None
        actions: Array = self._best(self._flat.vector, noise, as_tensor(obs, self.device))[0].cpu().numpy()
        return self._explored(actions) if explore else actions, {}

    def postprocess(self, batch: Batch) -> Batch:
        return n_step(batch, self._config.n_step, self._config.gamma)

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        """One update.

        Args:
            batch: OBS, ACTIONS, REWARDS, NEXT_OBS, DISCOUNTS, and WEIGHTS where sampling was by priority.

        Returns:
            As `td_error` the TD errors, or the cross entropies with several atoms.
        """
        return self._info(*self._learn(*self._arguments(batch)))

    def set_global_step(self, env_steps: int) -> None:
        super().set_global_step(env_steps)
        if self._config.noisy:
            self._epsilon = 0.0

    @torch.no_grad()
    def _best_actions(self, vector: torch.Tensor, noise: torch.Tensor | None, obs: torch.Tensor) -> tuple[torch.Tensor]:
        """int64 (n,)."""
        with self._flat.at(vector):
            self._network.set_noise(noise)
            return (self._values(self._network(obs)).argmax(dim=1),)

    def _shared_update(self, batch: Batch, rows: slice) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        return self._info(*(yield from self._steps(*self._arguments(batch, rows))))

    def _arguments(self, batch: Batch, rows: slice = ALL) -> list[Any]:
        """What `_steps` takes: networks and optimizer, which it changes in place, noise, and the batch's rows."""
        rewards = batch[c.REWARDS]
        weights = batch[c.WEIGHTS] if c.WEIGHTS in batch else np.ones_like(rewards)
        columns = (batch[c.OBS], batch[c.ACTIONS], rewards, batch[c.NEXT_OBS], batch[c.DISCOUNTS], weights)
        return [
            self._flat.vector,
            *self._adam.moments,
            self._target_flat.vector,
            self._learning_rate.fill_(self._lr),
            self._noise(),
            self._noise(),
            *[as_tensor(column[rows], self.device) for column in columns],
        ]

    def _info(self, td_error: torch.Tensor, summary: torch.Tensor) -> LearnInfo:
        stats = dict(zip(_STATS, summary.tolist(), strict=True))
        errors: Array = td_error.cpu().numpy()
        return LearnInfo({**stats, "lr": self._lr}, errors)

    def _update(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return alone(self._steps(*arguments))

    def _steps(
        self,
        vector: torch.Tensor,
        step: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        target: torch.Tensor,
        lr: torch.Tensor,
        noise: torch.Tensor | None,
        target_noise: torch.Tensor | None,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        next_obs: torch.Tensor,
        discounts: torch.Tensor,
        weights: torch.Tensor,
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Move `vector` and its moments by what the gradient becomes; returns the rows' errors and the stats."""
        with torch.no_grad(), self._target_flat.at(target):
            self._target.set_noise(target_noise)
            target_next = self._target(next_obs)
        with self._flat.at(vector) as parameters:
            self._network.set_noise(noise)
            scores, td_error = self._errors(obs, actions, rewards, next_obs, discounts, target_next)
            losses = td_error
            if self._config.num_atoms == 1:
                losses = functional.huber_loss(td_error, torch.zeros_like(td_error), reduction="none")
            loss = (weights * losses).mean()
            slope = gradient(loss, parameters)
        slope = yield slope
        with torch.no_grad():
            norm = self._adam.descend(vector, Moments(step, mean, square), slope, lr)
            td_error = td_error.detach()
            q = self._values(scores.detach()).gather(1, actions[:, None])
            return td_error, torch.stack([loss.detach(), norm, q.mean(), q.min(), q.max(), td_error.mean()])

    def _errors(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        next_obs: torch.Tensor,
        discounts: torch.Tensor,
        target_next: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The network's outputs at `obs`, and the rows' errors: TD errors, or cross entropies with several atoms.

        Args:
            target_next: the target network's outputs at `next_obs`, (n, actions, atoms).
        """
        if self._config.double_q:
            # One pass over both is cheaper than two; the second half is only read.
            scores, chooser = self._network(torch.cat([obs, next_obs])).chunk(2)
        else:
            scores, chooser = self._network(obs), target_next
        taken = _pick(scores, actions[:, None])
        best = self._values(chooser.detach()).argmax(dim=1, keepdim=True)
        following = _pick(target_next, best)
        if self._config.num_atoms == 1:
            return scores, taken.squeeze(1) - (rewards + discounts * following.squeeze(1))
        wanted = self._project(rewards, discounts, following.softmax(dim=1))
        return scores, -(wanted * taken.log_softmax(dim=1)).sum(dim=1)

    def _noise(self) -> torch.Tensor | None:
        """New noise for a network's noisy layers; None where it has none."""
        if not self._config.noisy:
            return None
        return torch.randn(self._network.noise_size, generator=self._generator, device=self.device)

    def _values(self, scores: torch.Tensor) -> torch.Tensor:
        """Expected returns (n, actions) of network outputs (n, actions, atoms)."""
        if self._config.num_atoms == 1:
            return scores.squeeze(2)
        return scores.softmax(dim=2) @ self._atoms

    def _project(self, rewards: torch.Tensor, discounts: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Distribution of r + discount * z on the atoms (Bellemare et al. 2017, algorithm 1), (n, atoms)."""
        low, high, count = self._config.v_min, self._config.v_max, self._config.num_atoms
        returns = (rewards[:, None] + discounts[:, None] * self._atoms).clamp(low, high)
        place = (returns - low) / ((high - low) / (count - 1))
        # Triangular kernels: atom j gets what lies within one spacing of it, in proportion to nearness.
        nearness = (1 - (place[:, None, :] - torch.arange(count, device=self.device)[None, :, None]).abs()).clamp(0)
        return (nearness * following[:, None, :]).sum(dim=2)


def _pick(scores: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Each row's outputs for its action: (n, actions, atoms) and int64 (n, 1) -> (n, atoms)."""
    return scores.gather(1, actions[:, :, None].expand(-1, -1, scores.shape[2])).squeeze(1)
