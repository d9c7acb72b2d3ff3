"""Action distributions over a network's outputs (torch.distributions validates and allocates too much)."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from gymnasium import spaces
from torch import nn

from rltrain.models.spaces import Space, action_components


class ActionDistribution(Protocol):
    """A family of distributions; `params` are float32 (n, size)."""

    size: int
    """Network outputs that parametrise one distribution."""

    def noise(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """What `count` actions are drawn with, float32 (count, ...)."""

    def sample(self, params: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Actions as `models.spaces.action_mapping` takes them."""

    def mode(self, params: torch.Tensor) -> torch.Tensor:
        """The likeliest actions."""

    def log_prob(self, params: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """float32 (n,)."""

    def entropy(self, params: torch.Tensor) -> torch.Tensor:
        """float32 (n,)."""


class Categorical:
    """Independent categorical components, from logits; one component has actions (n,), several (n, components)."""

    def __init__(self, components: Sequence[int], scalar: bool) -> None:
        self._components, self._scalar = list(components), scalar
        self.size = sum(components)

    def noise(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.empty((count, self.size), device=generator.device).exponential_(generator=generator)

    def sample(self, params: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        # Gumbel's trick: the argmax of logits - log(exponential noise) has the softmax's distribution.
        return self.mode(params - noise.log())

    def mode(self, params: torch.Tensor) -> torch.Tensor:
        if self._scalar:
            return params.argmax(dim=1)
        return torch.stack([logits.argmax(dim=1) for logits in self._split(params)], dim=1)

    def log_prob(self, params: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        columns = torch.split(actions.reshape(len(params), -1), 1, dim=1)
        total = torch.zeros(len(params), device=params.device)
        for logits, column in zip(self._split(params), columns, strict=True):
            total = total + logits.log_softmax(dim=1).gather(1, column).squeeze(1)
        return total

    def entropy(self, params: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(len(params), device=params.device)
        for logits in self._split(params):
            logp = logits.log_softmax(dim=1)
            total = total - (logp.exp() * logp).sum(dim=1)
        return total

    def _split(self, params: torch.Tensor) -> Sequence[torch.Tensor]:
        return (params,) if len(self._components) == 1 else torch.split(params, self._components, dim=1)


class DiagonalGaussian:
    """Independent normal components, from means and then log standard deviations; actions float32 (n, components)."""

    def __init__(self, components: int) -> None:
        self._components = components
        self.size = 2 * components

    def noise(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randn((count, self._components), generator=generator, device=generator.device)

    def sample(self, params: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        mean, log_std = params.chunk(2, dim=1)
        return mean + log_std.exp() * noise

    def mode(self, params: torch.Tensor) -> torch.Tensor:
        return params[:, : self._components]

    def log_prob(self, params: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        mean, log_std = params.chunk(2, dim=1)
        scaled = (actions - mean) * (-log_std).exp()
        return -(0.5 * scaled.square() + log_std).sum(dim=1) - 0.5 * math.log(2 * math.pi) * self._components

    def entropy(self, params: torch.Tensor) -> torch.Tensor:
        return params[:, self._components :].sum(dim=1) + 0.5 * math.log(2 * math.pi * math.e) * self._components


class SquashedGaussian:
    """tanh of independent normal components (Haarnoja et al. 2018, appendix C).

    Actions are float32 (n, components) in [-1, 1]; parameters are means and then log standard deviations, the
    latter clamped to [-20, 2].
    """

    def __init__(self, components: int) -> None:
        self._components = components
        self.size = 2 * components

    def transform(self, params: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions out of standard normal noise (n, components), differentiable by `params`, and their log_prob (n,)."""
        mean, log_std = self._split(params)
        before = mean + log_std.exp() * noise
        return before.tanh(), self._log_prob(log_std, noise, before)

    def noise(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randn((count, self._components), generator=generator, device=generator.device)

    def sample(self, params: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        mean, log_std = self._split(params)
        return (mean + log_std.exp() * noise).tanh()

    def mode(self, params: torch.Tensor) -> torch.Tensor:
        """tanh of the mean: the median, which is what is acted on without exploring."""
        return params[:, : self._components].tanh()

    def log_prob(self, params: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        mean, log_std = self._split(params)
        # The ends have no finite origin; float32 tells no more of them than this.
        before = actions.clamp(-1 + 1e-6, 1 - 1e-6).atanh()
        return self._log_prob(log_std, (before - mean) * (-log_std).exp(), before)

    def _split(self, params: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_std = params.chunk(2, dim=1)
        return mean, log_std.clamp(-20.0, 2.0)

    def _log_prob(self, log_std: torch.Tensor, noise: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        normal = -(0.5 * noise.square() + log_std).sum(dim=1) - 0.5 * math.log(2 * math.pi) * self._components
        # log(1 - tanh(u)^2) without taking the difference of two numbers near 1.
        slope = 2 * (math.log(2.0) - before - nn.functional.softplus(-2 * before))
        return normal - slope.sum(dim=1)


def distribution_for(space: Space) -> ActionDistribution:
    """The family for an action space: categorical for discrete ones, Gaussian for boxes."""
    if isinstance(space, spaces.Box):
        return DiagonalGaussian(math.prod(space.shape))
    return Categorical(action_components(space), scalar=isinstance(space, spaces.Discrete))
