"""PackedBox: observations of several parts as one row of numbers, which everything between the networks can carry."""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from rltrain.state import Array

Space: TypeAlias = gymnasium.Space[Any]

PLAIN_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
"""Spaces whose observations are one array."""


class PackedBox(spaces.Box):
    """A Dict or Tuple of plain spaces, nested as it may be, each part's numbers after the other's.

    Rows are uint8 where all parts are, and float32 otherwise.

    Args:
        whole: the environment's own space.

    Attributes:
        parts: the plain spaces, in their order in the row.
        ends: where each part ends in the row.

    Raises:
        TypeError: a part is of another kind.
    """

    def __init__(self, whole: Space) -> None:
        self.whole = whole
        self.parts = tuple(_parts(whole))
        if odd := next((part for part in self.parts if not isinstance(part, PLAIN_SPACES)), None):
            raise TypeError(f"{odd} is no plain space")
        self.ends: list[int] = np.cumsum([math.prod(part.shape or ()) for part in self.parts]).tolist()
        dtype = np.uint8 if all(part.dtype == np.uint8 for part in self.parts) else np.float32
        low, high = (0, 255) if dtype == np.uint8 else (-np.inf, np.inf)
        super().__init__(low, high, (self.ends[-1],), dtype)

    def __repr__(self) -> str:
        return repr(self.whole)

    def pack(self, obs: Any) -> Array:
        """One observation as a row.

        Raises:
            ValueError: a part isn't as the space says.
        """
        values = [np.asarray(value) for value in _values(self.whole, obs)]
        for value, part in zip(values, self.parts, strict=True):
            if value.shape != part.shape:
                raise ValueError(f"a part of the observation has the shape {value.shape}, the space says {part}")
            if not isinstance(part, spaces.Box) and not part.contains(value):
                raise ValueError(f"a part of the observation, {value}, isn't in {part}")
        return np.concatenate([value.reshape(-1) for value in values]).astype(self.dtype)


def pack_space(space: Space) -> PackedBox | None:
    """The packed form of a Dict or Tuple of plain spaces; None of any other space."""
    if isinstance(space, spaces.Dict | spaces.Tuple) and all(isinstance(part, PLAIN_SPACES) for part in _parts(space)):
        return PackedBox(space)
    return None


def _parts(space: Space) -> Iterator[Space]:
    """The spaces in a space that aren't made of others."""
    if isinstance(space, spaces.Dict):
        for part in space.spaces.values():
            yield from _parts(part)
    elif isinstance(space, spaces.Tuple):
        for part in space.spaces:
            yield from _parts(part)
    else:
        yield space


def _values(space: Space, obs: Any) -> Iterator[Any]:
    """Of an observation, the parts' values in the order of `_parts`."""
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from _values(part, obs[name])
    elif isinstance(space, spaces.Tuple):
        for part, value in zip(space.spaces, obs, strict=True):
            yield from _values(part, value)
    else:
        yield obs
