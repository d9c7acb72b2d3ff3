"""Action distributions over a network's outputs (torch.distributions validates and allocates too much)."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from gymnasium import spaces

from rltrain.models.spaces import Space, action_components


class ActionDistribution(Protocol):
    """A family of distributions; `params` are float32 (n, size)."""

    size: int
    """Network outputs that parametrise one distribution."""

    def sample(self, params: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
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

    def sample(self, params: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        # Gumbel's trick: the argmax of logits - log(exponential noise) has the softmax's distribution.
        noise = torch.empty_like(params).exponential_(generator=generator)
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

    def sample(self, params: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        mean, log_std = params.chunk(2, dim=1)
        noise = torch.empty_like(mean).normal_(generator=generator)
        return mean + log_std.exp() * noise

    def mode(self, params: torch.Tensor) -> torch.Tensor:
        return params[:, : self._components]

    def log_prob(self, params: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        mean, log_std = params.chunk(2, dim=1)
        scaled = (actions - mean) * (-log_std).exp()
        return -(0.5 * scaled.square() + log_std).sum(dim=1) - 0.5 * math.log(2 * math.pi) * self._components

    def entropy(self, params: torch.Tensor) -> torch.Tensor:
        return params[:, self._components :].sum(dim=1) + 0.5 * math.log(2 * math.pi * math.e) * self._components


def distribution_for(space: Space) -> ActionDistribution:
    """The family for an action space: categorical for discrete ones, Gaussian for boxes."""
    if isinstance(space, spaces.Box):
        return DiagonalGaussian(math.prod(space.shape))
    return Categorical(action_components(space), scalar=isinstance(space, spaces.Discrete))
