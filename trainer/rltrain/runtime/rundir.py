"""The run directory: what is in it, and who may write to it."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

from rltrain.api.errors import RunDirectoryInUse, StorageFull
from rltrain.runtime.checkpoint import CheckpointStore
from rltrain.runtime.observers import finite
from rltrain.runtime.result import RunResult
from rltrain.runtime.state_files import write_atomically


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

    def open(self, *, resume: bool) -> None:
        """Make the directory, or take up an existing one.

        Raises:
            RunDirectoryInUse: it isn't empty and `resume` wasn't asked for, or it isn't a directory.
            StorageFull: it can't be made.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunDirectoryInUse(f"{self.path} is a file: give a directory with --out")
        if not resume and self.path.is_dir() and any(self.path.iterdir()):
            raise RunDirectoryInUse(
                f"{self.path} holds an earlier run: give --resume to go on with it, or another directory with --out"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFull(f"{self.path} can't be made ({error.strerror}): give another with --out") from error

    def write_manifest(self, text: str) -> None:
        """manifest.yaml, as resolved. Raises StorageFull."""
        self._write("manifest.yaml", text)

    def finish(self, outcome: RunResult) -> None:
        """finished.json: this run is over for good. Raises StorageFull."""
        self._write("finished.json", json.dumps(finite(outcome.to_json()), indent=1))

    def outcome(self) -> RunResult | None:
        """How the run ended, if it is over for good."""
        try:
            loaded = json.loads((self.path / "finished.json").read_bytes())
            return RunResult(**{field.name: loaded[field.name] for field in fields(RunResult)})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, name: str, text: str) -> None:
        try:
            write_atomically(self.path / name, text.encode())
        except OSError as error:
            raise StorageFull(
                f"{self.path / name} can't be written ({error.strerror}): free some space or give another directory"
            ) from error
