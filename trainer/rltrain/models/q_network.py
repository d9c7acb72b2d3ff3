"""Q networks: dueling (Wang et al. 2016), distributional (Bellemare et al. 2017), noisy (Fortunato et al. 2018)."""

from collections.abc import Callable

import torch
from torch import nn

from rltrain.api.config import DQNConfig
from rltrain.models.mlp import NoisyLinear, mlp
from rltrain.models.spaces import ObsEncoder, Space


class QNetwork(nn.Module):
    """Observations (n, *shape) -> float32 (n, actions, atoms): Q values for one atom, else logits."""

    def __init__(self, config: DQNConfig, obs_space: Space, actions: int) -> None:
        super().__init__()
        self._actions, self._atoms = actions, config.num_atoms
        encoder = ObsEncoder(obs_space)
        hiddens = config.model.fcnet_hiddens
        trunk = mlp(encoder.size, hiddens, config.model.fcnet_activation)
        self.trunk = nn.Sequential(encoder, *trunk)
        features = hiddens[-1] if hiddens else encoder.size
        linear: Callable[[int, int], nn.Module] = nn.Linear
        if config.noisy:
            linear = lambda inputs, outputs: NoisyLinear(inputs, outputs, config.sigma0)  # noqa: E731
        self.advantage = mlp(features, config.hiddens, "relu", actions * self._atoms, linear)
        self.value = mlp(features, config.hiddens, "relu", self._atoms, linear) if config.dueling else None
        self._noisy = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        self.noise_size = sum(layer.noise_size for layer in self._noisy)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        features = self.trunk(obs)
        scores: torch.Tensor = self.advantage(features).view(-1, self._actions, self._atoms)
        if self.value is None:
            return scores
        value = self.value(features).view(-1, 1, self._atoms)
        q: torch.Tensor = value + scores - scores.mean(dim=1, keepdim=True)
        return q

    def set_noise(self, noise: torch.Tensor | None) -> None:
        """Use this standard normal noise, float32 (noise_size,), in the noisy layers, or their means with None."""
        sizes = [layer.noise_size for layer in self._noisy]
        parts = [None] * len(sizes) if noise is None else torch.split(noise, sizes)
        for layer, part in zip(self._noisy, parts, strict=True):
            layer.set_noise(part)
