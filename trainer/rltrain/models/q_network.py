"""Q networks: dueling (Wang et al. 2016), distributional (Bellemare et al. 2017), noisy (Fortunato et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import nn

from rltrain.api.config import DQNConfig
from rltrain.models.mlp import MakeLinear, NoisyLinear, mlp
from rltrain.models.spaces import ObsEncoder, Space


class QHeads(nn.Module):
    """Features (n, size) -> float32 (n, actions, atoms)."""

    def __init__(
        self,
        features: int,
        hiddens: Sequence[int],
        actions: int,
        *,
        dueling: bool,
        atoms: int = 1,
        linear: MakeLinear = nn.Linear,
    ) -> None:
        super().__init__()
        self._actions, self._atoms = actions, atoms
        self.advantage = mlp(features, hiddens, "relu", actions * atoms, linear)
        self.value = mlp(features, hiddens, "relu", atoms, linear) if dueling else None

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.advantage(features).view(-1, self._actions, self._atoms)
        if self.value is None:
            return scores
        value = self.value(features).view(-1, 1, self._atoms)
        q: torch.Tensor = value + scores - scores.mean(dim=1, keepdim=True)
        return q


class QNetwork(nn.Module):
    """Observations (n, *shape) -> float32 (n, actions, atoms): Q values for one atom, else logits."""

    def __init__(self, config: DQNConfig, obs_space: Space, actions: int) -> None:
        super().__init__()
        encoder = ObsEncoder(obs_space, config.model.conv_filters)
        hiddens = config.model.fcnet_hiddens
        trunk = mlp(encoder.size, hiddens, config.model.fcnet_activation)
        self.trunk = nn.Sequential(encoder, *trunk)
        features = hiddens[-1] if hiddens else encoder.size
        linear: MakeLinear = nn.Linear
        if config.noisy:
            linear = lambda inputs, outputs: NoisyLinear(inputs, outputs, config.sigma0)  # noqa: E731
        self.heads = QHeads(
            features, config.hiddens, actions, dueling=config.dueling, atoms=config.num_atoms, linear=linear
        )
        self._noisy = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        self.noise_size = sum(layer.noise_size for layer in self._noisy)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        q: torch.Tensor = self.heads(self.trunk(obs))
        return q

    def set_noise(self, noise: torch.Tensor | None) -> None:
        """Use this standard normal noise, float32 (noise_size,), in the noisy layers, or their means with None."""
        sizes = [layer.noise_size for layer in self._noisy]
        parts = [None] * len(sizes) if noise is None else torch.split(noise, sizes)
        for layer, part in zip(self._noisy, parts, strict=True):
            layer.set_noise(part)
