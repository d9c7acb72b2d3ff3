"""Fully connected networks."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

Activation = Literal["tanh", "relu"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
MakeLinear = Callable[[int, int], nn.Module]


def mlp(
    inputs: int,
    hiddens: Sequence[int],
    activation: Activation,
    outputs: int | None = None,
    linear: MakeLinear = nn.Linear,
) -> nn.Sequential:
    """Layers `inputs` -> `hiddens`, an activation after each, then `outputs` without one where given."""
    layers: list[nn.Module] = []
    for size_in, size_out in pairwise((inputs, *hiddens)):
        layers += [linear(size_in, size_out), _ACTIVATIONS[activation]()]
    if outputs is not None:
        layers.append(linear((inputs, *hiddens)[-1], outputs))
    return nn.Sequential(*layers)


def orthogonal(net: nn.Sequential, hidden_gain: float, output_gain: float) -> nn.Sequential:
    """Orthogonal weights (Saxe et al. 2014) and zero biases; the last layer gets `output_gain`."""
    linears = [layer for layer in net if isinstance(layer, nn.Linear)]
    for layer in linears:
        nn.init.orthogonal_(layer.weight, output_gain if layer is linears[-1] else hidden_gain)
        nn.init.zeros_(layer.bias)
    return net


class NoisyLinear(nn.Module):
    """A linear layer with learnt, factorised Gaussian noise (Fortunato et al. 2018, eq. 9-11).

    Without noise it is the plain layer of its means.
    """

    def __init__(self, inputs: int, outputs: int, sigma0: float) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma0 * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma0 * bound))
        self.noise_size = inputs + outputs
        self._noise: tuple[torch.Tensor, torch.Tensor] | None = None

    def set_noise(self, noise: torch.Tensor | None) -> None:
        """Use this standard normal noise, float32 (noise_size,), or none."""
        if noise is None:
            self._noise = None
            return
        scaled = noise.sign() * noise.abs().sqrt()
        inputs = self.weight.shape[1]
        self._noise = scaled[:inputs], scaled[inputs:]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._noise is None:
            return nn.functional.linear(x, self.weight, self.bias)
        noise_in, noise_out = self._noise
        weight = self.weight + self.weight_sigma * torch.outer(noise_out, noise_in)
        return nn.functional.linear(x, weight, self.bias + self.bias_sigma * noise_out)
