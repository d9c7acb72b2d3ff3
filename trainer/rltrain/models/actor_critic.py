"""Policy and value networks, separate or on one trunk."""

import math

import torch
from torch import nn

from rltrain.api.config import ModelConfig
from rltrain.models.distributions import DiagonalGaussian, distribution_for
from rltrain.models.mlp import mlp, orthogonal
from rltrain.models.spaces import ObsEncoder, Space

_HIDDEN_GAIN = math.sqrt(2)


class ActorCritic(nn.Module):
    """Observations (n, *shape) -> distribution parameters (n, size) and values (n,), both float32.

    Initial weights are orthogonal with a policy output near 0, which makes first actions uniform
    (Andrychowicz et al. 2021, section 3.2). A Gaussian's log standard deviations are free parameters from 0.
    """

    def __init__(self, model: ModelConfig, shared: bool, obs_space: Space, action_space: Space) -> None:
        super().__init__()
        self.distribution = distribution_for(action_space)
        self._encoder = ObsEncoder(obs_space, model.conv_filters)
        size, hiddens = self._encoder.size, model.fcnet_hiddens
        features = hiddens[-1] if hiddens else size
        outputs = self.distribution.size
        self.log_std: nn.Parameter | None = None
        if isinstance(self.distribution, DiagonalGaussian):
            outputs //= 2
            self.log_std = nn.Parameter(torch.zeros(outputs))
        trunk = [orthogonal(mlp(size, hiddens, model.fcnet_activation), _HIDDEN_GAIN, _HIDDEN_GAIN)]
        if not shared:
            trunk.append(orthogonal(mlp(size, hiddens, model.fcnet_activation), _HIDDEN_GAIN, _HIDDEN_GAIN))
        self.policy_trunk, self.value_trunk = trunk[0], trunk[-1]
        self.policy_head = orthogonal(mlp(features, (), model.fcnet_activation, outputs), 1.0, 0.01)
        self.value_head = orthogonal(mlp(features, (), model.fcnet_activation, 1), 1.0, 1.0)

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self._encoder(obs)
        features = self.policy_trunk(x)
        value_features = features if self.value_trunk is self.policy_trunk else self.value_trunk(x)
        return self._params(features), self.value_head(value_features).squeeze(1)

    def params(self, obs: torch.Tensor) -> torch.Tensor:
        """Distribution parameters only."""
        return self._params(self.policy_trunk(self._encoder(obs)))

    def values(self, obs: torch.Tensor) -> torch.Tensor:
        """Values only."""
        values: torch.Tensor = self.value_head(self.value_trunk(self._encoder(obs))).squeeze(1)
        return values

    def _params(self, features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.policy_head(features)
        if self.log_std is None:
            return outputs
        return torch.cat([outputs, self.log_std.expand_as(outputs)], dim=1)
