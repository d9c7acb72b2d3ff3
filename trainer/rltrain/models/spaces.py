"""How observations become network input, and a policy's actions the environment's."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from rltrain.models.packing import PLAIN_SPACES, PackedBox
from rltrain.models.vision import Filters, ImageEncoder, filters_for
from rltrain.state import Array

Space: TypeAlias = gymnasium.Space[Any]

OBSERVATION_SPACES = PLAIN_SPACES
"""Observation spaces that `ObsEncoder` takes."""


class ObsEncoder(nn.Module):
    """Observations (n, *shape) of the space's dtype -> float32 (n, size).

    Boxes are flattened (uint8 as fractions of 255), images after convolutions; discrete components one-hot encoded;
    of packed observations each part by itself, one after the other.

    Args:
        conv_filters: of images, see `filters_for`.
    """

    def __init__(self, space: Space, conv_filters: Filters | None = None) -> None:
        super().__init__()
        self._images: ImageEncoder | None = None
        self._parts: nn.ModuleList | None = None
        self.size: int
        if isinstance(space, PackedBox):
            self._cuts = space.ends[:-1]
            self._shapes = [part.shape or () for part in space.parts]
            images = [isinstance(part, spaces.Box) and len(part.shape) == 3 for part in space.parts]
            encoders = [
                ObsEncoder(part, conv_filters if image else None)
                for part, image in zip(space.parts, images, strict=True)
            ]
            self._parts = nn.ModuleList(encoders)
            self.size = sum(encoder.size for encoder in encoders)
            return
        self._scale = 1.0
        self._counts: list[int] | None = None
        self._start: Array | int = 0
        if isinstance(space, spaces.Discrete):
            self._counts, self._start = [int(space.n)], int(space.start)
        elif isinstance(space, spaces.MultiDiscrete):
            self._counts, self._start = space.nvec.reshape(-1).tolist(), space.start.reshape(-1)
        elif space.dtype == np.uint8 and isinstance(space, spaces.Box):
            self._scale = 1 / 255
        self.size = sum(self._counts) if self._counts else math.prod(space.shape or ())
        if isinstance(space, spaces.Box) and (filters := filters_for(space, conv_filters)):
            self._images = ImageEncoder(space, filters)
            self.size = self._images.size
        if self._counts:
            offsets = np.concatenate([[0], np.cumsum(self._counts)[:-1]]) - self._start
            self.register_buffer("offsets", torch.from_numpy(offsets.astype(np.int64)), persistent=False)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        if self._parts is not None:
            columns = zip(self._parts, obs.tensor_split(self._cuts, dim=1), self._shapes, strict=True)
            return torch.cat([encode(part.reshape(-1, *shape)) for encode, part, shape in columns], dim=1)
        if self._counts is None:
            numbers = obs if obs.dtype == torch.float32 else obs.float()
            numbers = numbers if self._scale == 1.0 else numbers * self._scale
            return numbers.reshape(len(obs), self.size) if self._images is None else self._images(numbers)
        flat = obs.reshape(len(obs), len(self._counts))
        offsets = self.get_buffer("offsets")
        hot = torch.zeros(len(flat), self.size, device=flat.device)
        return hot.scatter_(1, flat.long() + offsets, 1.0)


def check_filters(space: Space, conv_filters: Filters | None) -> None:
    """Refuse convolutions that don't fit a space's images.

    Raises:
        UnsupportedSpace: with what to do instead.
    """
    parts = [part for part in space.parts if len(part.shape or ()) == 3] if isinstance(space, PackedBox) else [space]
    for part in parts:
        if isinstance(part, spaces.Box):
            filters_for(part, conv_filters)


def action_mapping(space: Space) -> Callable[[Array], Array]:
    """The function from a policy's actions to contained actions of a batch of environments.

    A policy numbers discrete actions from 0 and flattens components: int64 (n,) for Discrete, int64
    (n, components) for MultiDiscrete and MultiBinary, float32 (n, components) for Box. Bounded components
    of a Box run from -1 to 1 and are clipped there; unbounded ones are taken as they are.
    """
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return (lambda actions: actions + start) if start else (lambda actions: actions)
    if isinstance(space, spaces.Box):
        return _box_mapping(space)
    shape, dtype = space.shape or (), space.dtype
    first = space.start.reshape(-1) if isinstance(space, spaces.MultiDiscrete) else 0
    return lambda actions: (actions + first).reshape(len(actions), *shape).astype(dtype)


def stored_actions(space: Space, env_actions: Array) -> Array:
    """The inverse of `action_mapping`: a policy's numbers for a batch of the environment's actions.

    Bounded components of a Box land in [-1, 1], whatever rounding did to them.
    """
    count = len(env_actions)
    if isinstance(space, spaces.Discrete):
        return env_actions.reshape(count).astype(np.int64) - int(space.start)
    if isinstance(space, spaces.Box):
        scale, middle, bounded = _box_scale(space)
        actions = (env_actions.reshape(count, -1).astype(np.float64) - middle) / scale
        return np.where(bounded, actions.clip(-1.0, 1.0), actions).astype(np.float32)
    first = space.start.reshape(-1) if isinstance(space, spaces.MultiDiscrete) else 0
    return env_actions.reshape(count, -1).astype(np.int64) - first


def _box_scale(space: spaces.Box) -> tuple[Array, Array, Array]:
    """Half width and middle of each component (1 and 0 of unbounded ones), and whether it is bounded."""
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    bounded = np.isfinite(low) & np.isfinite(high)
    scale = np.where(bounded, (np.where(bounded, high, 1.0) - np.where(bounded, low, -1.0)) / 2, 1.0)
    middle = np.where(bounded, (np.where(bounded, high, 1.0) + np.where(bounded, low, -1.0)) / 2, 0.0)
    return scale, middle, bounded


def _box_mapping(space: spaces.Box) -> Callable[[Array], Array]:
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    scale, middle, _ = _box_scale(space)

    def to_env(actions: Array) -> Array:
        env_actions = (actions * scale + middle).astype(space.dtype)
        return np.clip(env_actions, low, high).reshape(len(actions), *space.shape)

    return to_env


def action_components(space: Space) -> list[int]:
    """Choices of each discrete component: `[n]` for Discrete, and so on."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.reshape(-1)]
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    raise TypeError(f"{space} has no discrete components")
