"""State: what a resume needs, as a tree that fits JSON and npz files (never pickle)."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""An array whose dtype and shape the docstring beside it tells."""

State: TypeAlias = dict[str, Any]
"""A tree of dict (str keys), list, str, int, float, bool, None and `numpy.ndarray`."""


def content_hash(state: object) -> str:
    """SHA-256 over a state's structure, dtypes, shapes and bytes; equal trees have equal hashes.

    Raises:
        TypeError: a node isn't of a `State`'s types.
    """
    digest = hashlib.sha256()
    _feed(digest, state)
    return digest.hexdigest()


def _feed(digest: "hashlib._Hash", node: object) -> None:
    if isinstance(node, np.ndarray):
        digest.update(f"a{node.dtype.str}{node.shape};".encode())
        digest.update(np.ascontiguousarray(node).data)
    elif isinstance(node, Mapping):
        digest.update(f"d{len(node)};".encode())
        for key in sorted(node):
            _feed(digest, key)
            _feed(digest, node[key])
    elif isinstance(node, str):
        data = node.encode()
        digest.update(f"s{len(data)};".encode() + data)
    elif node is None or isinstance(node, bool | int | float):
        digest.update(f"{type(node).__name__}{node!r};".encode())
    elif isinstance(node, Sequence):
        digest.update(f"l{len(node)};".encode())
        for item in node:
            _feed(digest, item)
    else:
        raise TypeError(f"a state can't hold {type(node).__name__}")


def generator_state(generator: np.random.Generator) -> State:
    """A NumPy generator's state."""
    return dict(generator.bit_generator.state)


def restore_generator(generator: np.random.Generator, state: State) -> None:
    """Put `generator` (of the same bit generator) where `state` was taken.

    Raises:
        ValueError: the state is of another bit generator or malformed.
    """
    try:
        generator.bit_generator.state = state
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"not the state of a random generator: {error}") from error
