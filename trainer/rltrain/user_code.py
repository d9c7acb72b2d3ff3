"""The user's own modules: environments, functions, plans."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from rltrain.api.errors import InvalidManifest, Problem

FOLDERS: Final = "RLTRAIN_CODE_PATH"
"""Folders of the user's modules; an environment variable, for actors inherit it."""


def reach(*folders: Path) -> None:
    """Let this process, and those that it starts, find modules in `folders` too."""
    os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys(str(folder.resolve()) for folder in folders))


def folders() -> list[str]:
    """Those of the user's modules."""
    return list(filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)))


def import_module(name: str) -> ModuleType:
    """Import a module that a manifest names; what is installed goes before what lies in the user's folders.

    Raises:
        ImportError: there is none, or it can't be imported.
    """
    extend_path()
    return importlib.import_module(name)


def extend_path() -> None:
    """Find what lies in the user's folders, after what is installed."""
    for folder in folders():
        if folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()


def load(reference: str, field: str, kind: str) -> Any:
    """What `"package.module:name"` names.

    Args:
        field: where it stands in the manifest.
        kind: of what is wanted, for the hint.

    Raises:
        InvalidManifest: there is no such thing.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # the module's own code may raise anything
        cause = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        message = f"{reference!r} can't be loaded: {cause}"
        raise InvalidManifest([Problem(field, message, f'use "package.module:{kind}"')]) from error
