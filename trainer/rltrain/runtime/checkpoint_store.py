"""Checkpoint store: whole states in folders that appear at once or not at all.

A crash at any moment leaves the last whole one.
"""

import json
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rltrain.api.errors import CheckpointUnusable, InvalidInput, StorageFull
from rltrain.runtime.checkpoint import (
    MARKER,
    Broken,
    Checkpoint,
    Identity,
    Summary,
    open_checkpoint,
    write_checkpoint,
)
from rltrain.runtime.state_files import FULL, flush_folder, write_atomically
from rltrain.state import State

log = logging.getLogger(__name__)

BEST: Final = "best.json"
Metric = Literal["evaluation", "episodes"]
"""Whose returns: those of evaluations, or of the window of training's episodes."""
_NAME: Final = re.compile(r"^(\d{12})-(\d{4,})(?:-(\d+))?$")
_TEMPORARY: Final = ".saving-"


@dataclass(frozen=True)
class Best:
    """Which checkpoint is the best one, and how good it was found to be."""

    path: Path
    metric: Metric
    return_mean: float


class CheckpointStore:
    """Checkpoints below a folder, named by env steps and attempt, and by trained steps where those are the same.

    Args:
        folder: made when the first checkpoint is saved.
        keep: newest ones that stay; so does the one that is marked as the best.
    """

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self._folder = folder
        self._keep = keep

    def save(
        self, identity: Identity, summary: Summary, parts: Mapping[str, State], spared: Checkpoint | None = None
    ) -> Checkpoint:
        """Write a checkpoint and prune old ones, but not the spared one.

        Raises:
            StorageFull: nothing was changed.
        """
        name = f"{summary.steps:012d}-{summary.attempt:04d}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            # At one env step more may have been learnt since the last save.
            for final in (self._folder / name, self._folder / f"{name}-{summary.trained_steps}"):
                there = _whole(final)
                if there is None:
                    shutil.rmtree(final, ignore_errors=True)
                    break
                if there.summary.trained_steps == summary.trained_steps:
                    return there
            temporary = self._folder / f"{_TEMPORARY}{final.name}"
            temporary.mkdir()
            checkpoint = write_checkpoint(temporary, final, identity, summary, parts)
            flush_folder(temporary)
            temporary.rename(final)
            flush_folder(self._folder)
        except OSError as error:
            self._remove_leftovers()
            if error.errno in FULL:
                raise StorageFull(
                    f"no room for a checkpoint in {self._folder}: free some space, use a larger volume or lower "
                    "checkpoint.keep"
                ) from error
            raise
        self.prune(final, *(() if spared is None else (spared.path,)))
        return checkpoint

    def mark_best(self, best: Best) -> None:
        """From now on this one is. Raises OSError."""
        told = {"checkpoint": best.path.name, "metric": best.metric, "return_mean": best.return_mean}
        write_atomically(self._folder / BEST, json.dumps(told).encode())

    def best(self) -> Best | None:
        """The one that is marked; None where there is none, or it has gone."""
        try:
            told = json.loads((self._folder / BEST).read_bytes())
            path = self._folder / told["checkpoint"]
            if not _NAME.match(path.name) or path.parent != self._folder or not (path / MARKER).exists():
                return None
            return Best(path, told["metric"], float(told["return_mean"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def prune(self, *spared: Path) -> None:
        """Remove all but the newest ones, the best one and those that are spared."""
        best = self.best()
        stay = {*spared, *(() if best is None else (best.path,))}
        for folder in self._folders()[self._keep :]:
            if folder not in stay:
                shutil.rmtree(folder, ignore_errors=True)

    def __bool__(self) -> bool:
        """Whether there are any, whole or broken."""
        return bool(self._folders())

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; broken ones are skipped and logged. None where there are no folders at all.

        Raises:
            CheckpointUnusable: there are checkpoints, but none is whole.
        """
        skipped: list[str] = []
        for folder in self._folders():
            try:
                checkpoint = open_checkpoint(folder)
            except Broken as reason:
                skipped.append(f"{folder.name} is broken ({reason})")
                continue
            if skipped:
                log.warning("%s: using the older checkpoint %s instead", "; ".join(skipped), folder.name)
            return checkpoint
        if skipped:
            raise CheckpointUnusable(
                f"no whole checkpoint in {self._folder}: {'; '.join(skipped)}. Restore one from a copy, or start again "
                "in an empty run directory"
            )
        return None

    def _folders(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        named = [(match, path) for path in self._folder.iterdir() if (match := _NAME.match(path.name))]
        named.sort(key=lambda item: tuple(int(number or 0) for number in item[0].groups()), reverse=True)
        return [path for _, path in named]

    def _remove_leftovers(self) -> None:
        for leftover in self._folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)


def find_checkpoint(path: Path, *, best: bool = False) -> Checkpoint:
    """The checkpoint at `path`, or the newest whole one, or the best one, of the run directory at `path`.

    Raises:
        InvalidInput: the best one is asked for where none is marked.
        CheckpointUnusable: it isn't there, or isn't whole.
    """
    if best:
        marked = CheckpointStore(path / "checkpoints").best()
        if marked is None:
            raise InvalidInput(
                f"no checkpoint in {path} is marked as the best one: a run with spec.checkpoint.keepBest: true marks it"
            )
        path = marked.path
    if (path / "checkpoints").is_dir():
        newest = CheckpointStore(path / "checkpoints").newest()
        if newest is not None:
            return newest
    elif path.is_dir():
        try:
            return open_checkpoint(path)
        except Broken as reason:
            raise CheckpointUnusable(
                f"{path} is not a whole checkpoint ({reason}): give a run directory, or another of its checkpoints"
            ) from reason
    raise CheckpointUnusable(f"no checkpoint at {path}: give a run directory or one of the folders in its checkpoints/")


def _whole(folder: Path) -> Checkpoint | None:
    try:
        return open_checkpoint(folder)
    except Broken:
        return None
