"""DQN (Mnih et al. 2015) with the options of Rainbow (Hessel et al. 2018)."""

import copy

import numpy as np
import torch
from gymnasium import spaces
from torch.nn import functional

from rltrain.api.config import DQNConfig
from rltrain.models.flat import FlatParameters
from rltrain.models.q_network import QNetwork
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.base import LearnInfo, interpolate
from rltrain.policies.n_step import n_step
from rltrain.policies.torch_policy import Seeds, TorchPolicy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, State


class DQNPolicy(TorchPolicy):
    """Q network, target network and epsilon-greedy or noisy exploration over a Discrete action space."""

    def __init__(
        self, config: DQNConfig, obs_space: Space, action_space: spaces.Discrete, seeds: Seeds, device: str = "cpu"
    ) -> None:
        self._actions = int(action_space.n)
        self._config = config
        exploration = config.exploration_config
        self._epsilons = (
            (0.0, exploration.initial_epsilon),
            (float(exploration.epsilon_timesteps), exploration.final_epsilon),
        )
        self._epsilon = 0.0
        super().__init__(config, lambda: self._build(obs_space), seeds, device, config.adam_epsilon)
        self._target = copy.deepcopy(self._network)
        self._target.requires_grad_(False)
        self._target_flat = FlatParameters(self._target)
        step = (config.v_max - config.v_min) / max(config.num_atoms - 1, 1)
        self._atoms = config.v_min + step * torch.arange(config.num_atoms, device=self.device)

    def _build(self, obs_space: Space) -> QNetwork:
        self._network = QNetwork(self._config, obs_space, self._actions)
        return self._network

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        with torch.inference_mode():
            if self._config.noisy:
                self._network.set_noise(self._generator if explore else None)
            values = self._values(self._network(as_tensor(obs, self.device)))
            actions: Array = values.argmax(dim=1).cpu().numpy()
        if explore and self._epsilon > 0:
            random = self._rng.random(len(actions)) < self._epsilon
            actions = np.where(random, self._rng.integers(self._actions, size=len(actions)), actions)
        return actions, {}

    def postprocess(self, batch: Batch) -> Batch:
        return n_step(batch, self._config.n_step, self._config.gamma)

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        """One update.

        Args:
            batch: OBS, ACTIONS, REWARDS, NEXT_OBS, DISCOUNTS, and WEIGHTS where sampling was by priority.

        Returns:
            As `td_error` the TD errors, or the cross entropies with several atoms.
        """
        device = self.device
        obs, next_obs = as_tensor(batch[c.OBS], device), as_tensor(batch[c.NEXT_OBS], device)
        actions = as_tensor(batch[c.ACTIONS], device)
        rewards, discounts = as_tensor(batch[c.REWARDS], device), as_tensor(batch[c.DISCOUNTS], device)
        weights = as_tensor(batch[c.WEIGHTS], device) if c.WEIGHTS in batch else torch.ones_like(rewards)
        if self._config.noisy:
            self._network.set_noise(self._generator)
            self._target.set_noise(self._generator)
        rows = torch.arange(len(obs), device=device)
        if self._config.double_q:
            # One pass over both is cheaper than two; the second half is only read.
            scores, online_next = self._network(torch.cat([obs, next_obs])).chunk(2)
        else:
            scores, online_next = self._network(obs), None
        taken = scores[rows, actions]
        with torch.no_grad():
            target_next = self._target(next_obs)
            best = self._values(target_next if online_next is None else online_next.detach()).argmax(dim=1)
            following = target_next[rows, best]
        if self._config.num_atoms == 1:
            td_error = taken.squeeze(1) - (rewards + discounts * following.squeeze(1))
            losses = functional.huber_loss(td_error, torch.zeros_like(td_error), reduction="none")
        else:
            wanted = self._project(rewards, discounts, following.softmax(dim=1))
            losses = td_error = -(wanted * taken.log_softmax(dim=1)).sum(dim=1)
        loss = (weights * losses).mean()
        self._flat.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = self._apply_gradient()
        q = self._values(scores.detach())[rows, actions]
        stats = torch.stack([loss.detach(), norm, q.mean(), q.min(), q.max(), td_error.detach().mean()]).tolist()
        names = ("loss", "grad_norm", "mean_q", "min_q", "max_q", "mean_td_error")
        errors: Array = td_error.detach().cpu().numpy()
        return LearnInfo({**dict(zip(names, stats, strict=True)), "lr": self._lr}, errors)

    def update_target(self) -> None:
        self._target_flat.vector.copy_(self._flat.vector)

    def set_global_step(self, env_steps: int) -> None:
        super().set_global_step(env_steps)
        self._epsilon = 0.0 if self._config.noisy else interpolate(self._epsilons, env_steps)

    def exploration_state(self) -> dict[str, float]:
        return {"epsilon": self._epsilon}

    def learned_state(self) -> State:
        return {**super().learned_state(), "target": self._target_flat.get()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._target_flat.set(state["target"])

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
