"""Recurrent Q networks: what they have seen of an episode is in a state that goes in and comes out."""

from typing import Literal

import torch
from torch import nn

from rltrain.api.config import R2D2Config
from rltrain.models.mlp import mlp
from rltrain.models.q_network import QHeads
from rltrain.models.spaces import ObsEncoder, Space


class RecurrentLayer(nn.Module):
    """An LSTM (Hochreiter & Schmidhuber 1997) or a GRU (Cho et al. 2014), its state in one tensor.

    float32 (n, steps, inputs) and the state before them, (n, state_size) -> (n, steps, size) and the state after.
    An episode begins with zeros.
    """

    def __init__(self, kind: Literal["LSTM", "GRU"], inputs: int, size: int) -> None:
        super().__init__()
        self.layer = (nn.LSTM if kind == "LSTM" else nn.GRU)(inputs, size, batch_first=True)
        self.state_size = size * (2 if kind == "LSTM" else 1)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if isinstance(self.layer, nn.LSTM):
            hidden, cell = (part.contiguous() for part in state.unsqueeze(0).chunk(2, dim=2))
            out, (hidden, cell) = self.layer(x, (hidden, cell))
            return out, torch.cat([hidden, cell], dim=2).squeeze(0)
        out, hidden = self.layer(x, state.unsqueeze(0))
        return out, hidden.squeeze(0)


class RecurrentQNetwork(nn.Module):
    """Observations (n, steps, *shape) and a state (n, state_size) -> float32 (n, steps, actions), the state after."""

    def __init__(self, config: R2D2Config, obs_space: Space, actions: int) -> None:
        super().__init__()
        model = config.model
        encoder = ObsEncoder(obs_space, model.conv_filters)
        self.trunk = nn.Sequential(encoder, *mlp(encoder.size, model.fcnet_hiddens, model.fcnet_activation))
        features = model.fcnet_hiddens[-1] if model.fcnet_hiddens else encoder.size
        self.recurrent = RecurrentLayer(model.recurrent, features, model.lstm_cell_size)
        self.heads = QHeads(model.lstm_cell_size, config.hiddens, actions, dueling=config.dueling)

    @property
    def state_size(self) -> int:
        """Components of the state."""
        return self.recurrent.state_size

    def forward(self, obs: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count, steps = obs.shape[:2]
        features, state = self.recurrent(self.trunk(obs.flatten(0, 1)).view(count, steps, -1), state)
        return self.heads(features.flatten(0, 1)).view(count, steps, -1), state
