"""State trees on disk: the arrays in an .npz, everything else in a .json beside it. No pickle either way."""

import errno
import json
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np

from rltrain.state import Array, State

ARRAY_KEY: Final = "__array__"
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file system without room."""


def write_state(folder: Path, part: str, state: State) -> list[Path]:
    """Write `part`.json and `part`.npz, flushed to the disk.

    Raises:
        TypeError: a node that isn't of a State's types, or an array of Python objects.
        OSError: the disk is full or failing.
    """
    arrays: dict[str, Array] = {}
    tree = _encode(state, part, arrays)
    json_path, npz_path = folder / f"{part}.json", folder / f"{part}.npz"
    with json_path.open("wb") as file:
        file.write(json.dumps(tree).encode())
        flush(file)
    with npz_path.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(cast(BinaryIO, member), array, allow_pickle=False)
        flush(file)
    return [json_path, npz_path]


def read_state(folder: Path, part: str) -> State:
    """Read what `write_state` wrote.

    Raises:
        ValueError: the files don't fit each other, or hold what `write_state` never writes.
        OSError: they can't be read.
    """
    tree = json.loads((folder / f"{part}.json").read_bytes())
    try:
        with np.load(folder / f"{part}.npz", allow_pickle=False) as arrays:
            state = _decode(tree, {key: arrays[key] for key in arrays.files})
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ValueError(f"{part}.npz: {error}") from error
    if not isinstance(state, dict):
        raise ValueError(f"{part}.json doesn't hold an object")
    return state


def flush(file: Any) -> None:
    """Make what was written to an open file survive a crash of the machine."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Make a folder's entries survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            flush(file)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def _encode(node: Any, path: str, arrays: dict[str, Array]) -> Any:
    if isinstance(node, np.ndarray):
        if node.dtype.hasobject:
            raise TypeError(f"{path}: an array of Python objects can't be saved")
        key = str(len(arrays))
        arrays[key] = node
        return {ARRAY_KEY: key}
    if isinstance(node, np.generic):
        return node.item()
    if isinstance(node, dict):
        if ARRAY_KEY in node or not all(isinstance(key, str) for key in node):
            raise TypeError(f"{path}: keys must be strings other than {ARRAY_KEY!r}")
        return {key: _encode(child, f"{path}/{key}", arrays) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_encode(child, f"{path}/{index}", arrays) for index, child in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(f"{path}: {type(node).__name__} can't be saved")


def _decode(node: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(node, dict):
        if ARRAY_KEY in node:
            return arrays[node[ARRAY_KEY]]
        return {key: _decode(child, arrays) for key, child in node.items()}
    if isinstance(node, list):
        return [_decode(child, arrays) for child in node]
    return node
