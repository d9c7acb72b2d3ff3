"""The user's own modules: environments, functions, plans."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

FOLDERS: Final = "RLTRAIN_CODE_PATH"
"""Folders of the user's modules; an environment variable, for actors inherit it."""


def reach(*folders: Path) -> None:
    """Let this process, and those that it starts, find modules in `folders` too."""
    os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys(str(folder.resolve()) for folder in folders))


def import_module(name: str) -> ModuleType:
    """Import a module that a manifest names; what is installed goes before what lies in the user's folders.

    Raises:
        ImportError: there is none, or it can't be imported.
    """
    for folder in filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)):
        if folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
    return importlib.import_module(name)
