"""Convolutions over images."""

import math
from itertools import pairwise
from typing import Final

import torch
from gymnasium import spaces
from torch import nn

from rltrain.api.errors import UnsupportedSpace

Filters = tuple[tuple[int, int, int], ...]
"""Convolutions as (channels, kernel, stride)."""

_LARGE: Final[Filters] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Of Mnih et al. 2015."""
_MEDIUM: Final[Filters] = ((16, 3, 1), (32, 3, 2), (32, 3, 2))
_SMALL: Final[Filters] = ((16, 3, 1), (32, 3, 2))
_BY_SIDE: Final[tuple[tuple[int, Filters], ...]] = ((36, _LARGE), (16, _MEDIUM), (8, _SMALL))
"""Convolutions for images whose shorter side has so many pixels; smaller ones are no images."""


def filters_for(space: spaces.Box, given: Filters | None) -> Filters:
    """The convolutions that observations (height, width, channels) go through; none where they are no images.

    Args:
        given: the user's own, empty for none; None chooses by the image's size.

    Raises:
        UnsupportedSpace: the given ones don't fit.
    """
    if given is None:
        shorter = min(space.shape[:2]) if len(space.shape) == 3 else 0
        return next((filters for side, filters in _BY_SIDE if shorter >= side), ())
    if not given:
        return given
    if len(space.shape) != 3:
        raise UnsupportedSpace(
            f"model.conv_filters are for images (height, width, channels), but the observation space is {space}: "
            "leave them out"
        )
    for layer, (size, (_, kernel, _)) in enumerate(zip(_sizes(space, given), given, strict=False)):
        if min(size) < kernel:
            raise UnsupportedSpace(
                f"model.conv_filters don't fit the observation space {space}: layer {layer} has a kernel of {kernel}, "
                f"but what reaches it has {size[0]}x{size[1]} pixels; use smaller kernels, strides or fewer layers"
            )
    return given


def _sizes(space: spaces.Box, filters: Filters) -> list[tuple[int, int]]:
    """Heights and widths before each layer, and after the last."""
    sizes = [(space.shape[0], space.shape[1])]
    for _, kernel, stride in filters:
        sizes.append(((sizes[-1][0] - kernel) // stride + 1, (sizes[-1][1] - kernel) // stride + 1))
    return sizes


class ImageEncoder(nn.Module):
    """float32 (n, height, width, channels) -> (n, size): convolutions with ReLUs, then flattened."""

    def __init__(self, space: spaces.Box, filters: Filters) -> None:
        super().__init__()
        channels = [space.shape[2], *(channels for channels, _, _ in filters)]
        layers: list[nn.Module] = []
        for (before, after), (_, kernel, stride) in zip(pairwise(channels), filters, strict=True):
            layers += [nn.Conv2d(before, after, kernel, stride), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.size = channels[-1] * math.prod(_sizes(space, filters)[-1])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers(images.movedim(3, 1)).flatten(1)
        return out
