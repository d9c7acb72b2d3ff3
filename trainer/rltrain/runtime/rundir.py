"""The run directory: what is in it, and who may write to it."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from rltrain.api.errors import RltrainError, RunDirectoryUnusable, StorageFull
from rltrain.api.finite import finite
from rltrain.runtime.attempts import Attempts
from rltrain.runtime.checkpoint_store import CheckpointStore
from rltrain.runtime.result import RunResult
from rltrain.runtime.state_files import FULL, write_atomically

_LOCK: Final = ".lock"
_CODE: Final = "code.json"


@dataclass(frozen=True)
class RunDirectory:
    """Paths of a run.

    Attributes:
        path: the directory.
        keep: checkpoints that stay.
    """

    path: Path
    keep: int = 3

    @property
    def results(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def attempts(self) -> Path:
        return self.path / "attempts"

    @property
    def checkpoints(self) -> CheckpointStore:
        return CheckpointStore(self.path / "checkpoints", self.keep)

    def open(self) -> None:
        """Make the directory, or take an existing run up, even from a process that still writes to it.

        Raises:
            RunDirectoryUnusable: it holds something else than a run, or can't be made.
            StorageFull: there is no room for it.
        """
        with self._told("made"):
            # A file in its place is told by mkdir.
            if self.path.is_dir() and not self.attempts.is_dir() and any(_others(self.path)):
                raise RunDirectoryUnusable(
                    f"{self.path} holds something that isn't a run, such as {next(_others(self.path)).name}: "
                    "give another directory with --out"
                )
            self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def hold(self, *, resume: bool) -> Iterator[None]:
        """`open`, and keep the directory to this process until it leaves.

        An earlier run that never came to a checkpoint is started over.

        Raises:
            RunDirectoryUnusable: as `open`, or another process has it, or there is a run and `resume` wasn't asked for.
            StorageFull: as `open`.
        """
        self.open()
        with self._told("written"):
            lock = (self.path / _LOCK).open("a+")
        with lock:
            self._lock(lock.fileno())
            if not resume:
                if self.checkpoints:
                    raise RunDirectoryUnusable(
                        f"{self.path} holds an earlier run: give --resume to go on with it, "
                        "or another directory with --out"
                    )
                self._clear()
            yield

    def attempt(self, owner: str) -> Attempts:
        """The record of this start; the newest one owns the directory. Raises RunDirectoryUnusable, StorageFull."""
        with self._told("written"):
            return Attempts(self.attempts, owner)

    def write_manifest(self, text: str) -> None:
        """manifest.yaml, as resolved. Raises StorageFull."""
        self._write("manifest.yaml", text)

    def write_code(self, folders: Sequence[str]) -> None:
        """code.json: where the user's modules were found. Raises StorageFull."""
        self._write(_CODE, json.dumps(folders))

    def finish(self, outcome: RunResult) -> None:
        """finished.json: this run is over for good. Raises StorageFull."""
        self._write("finished.json", json.dumps(finite(outcome.to_json()), indent=1))

    def unfinish(self) -> None:
        """The run goes on after all."""
        (self.path / "finished.json").unlink(missing_ok=True)

    def outcome(self) -> RunResult | None:
        """How the run ended, if it is over for good."""
        try:
            loaded = json.loads((self.path / "finished.json").read_bytes())
            return RunResult(**{field.name: loaded[field.name] for field in fields(RunResult) if field.name in loaded})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode() or "another one"
            raise RunDirectoryUnusable(
                f"{self.path} is in use by process {holder}: wait for its end, stop it, "
                "or give another directory with --out"
            ) from None
        except OSError:
            return  # some network file systems have no locks
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())

    def _clear(self) -> None:
        """Remove what a run without checkpoints has written."""
        shutil.rmtree(self.attempts, ignore_errors=True)
        for written in (self.results, *self.path.glob("events.out.tfevents.*")):
            written.unlink(missing_ok=True)
        self.unfinish()

    def _write(self, name: str, text: str) -> None:
        with self._told(f"written ({name})"):
            write_atomically(self.path / name, text.encode())

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """Failures of the file system as sentences."""
        try:
            yield
        except OSError as error:
            what = f"{self.path} can't be {done}: {error.strerror}"
            wrong: RltrainError = RunDirectoryUnusable(f"{what}; give another directory with --out")
            if error.errno in FULL:
                wrong = StorageFull(f"{what}; free some space, or give another directory with --out")
            elif error.errno in (errno.EEXIST, errno.ENOTDIR):
                wrong = RunDirectoryUnusable(f"{self.path} is, or is below, a file: give a directory with --out")
            raise wrong from error


def code_of(path: Path) -> list[Path]:
    """Folders in which the modules of a run, given by its directory or one of its checkpoints, were found.

    Only what lies outside of the run counts: what came with it, perhaps from somebody else, isn't run.
    """
    try:
        run = next(folder for folder in (path, *path.absolute().parents[:2]) if (folder / _CODE).is_file())
        found = [Path(folder) for folder in json.loads((run / _CODE).read_bytes())]
        return [folder for folder in found if folder.is_dir() and not folder.resolve().is_relative_to(run.resolve())]
    except (OSError, StopIteration, ValueError, TypeError):
        return []


def _others(folder: Path) -> Iterator[Path]:
    """What lies in a folder, without what a run leaves that was refused before it began."""
    with suppress(OSError):
        yield from (entry for entry in sorted(folder.iterdir()) if entry.name != _LOCK)
