"""A checkpoint on disk: a folder with the whole state of a run, and a file that says what is in it."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from rltrain.api.errors import CheckpointMismatch, CheckpointUnusable
from rltrain.runtime.state_files import flush, read_state, write_state
from rltrain.state import State

FORMAT: Final = 1
MARKER: Final = "checkpoint.json"


@dataclass(frozen=True)
class Identity:
    """What a checkpoint must have in common with the run that opens it."""

    plan: str
    env: str
    observation_space: str
    action_space: str


@dataclass(frozen=True)
class Summary:
    """What stands in checkpoint.json for people and tests.

    Attributes:
        hashes: of replay contents and priorities; the optimizer's step and epsilon themselves.
        job: the resolved manifest, so that a checkpoint can be evaluated alone.
    """

    env_steps: int
    trained_steps: int
    episodes: int
    episode_return_mean: float | None
    time_s: float
    attempt: int
    hashes: Mapping[str, Any]
    job: Mapping[str, Any]

    @property
    def steps(self) -> int:
        """See `MetricsContext.steps`."""
        return self.env_steps or self.trained_steps


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    path: Path
    identity: Identity
    summary: Summary
    parts: tuple[str, ...]

    def read(self, part: str) -> State | None:
        """One part's state, or None where it wasn't saved. Raises CheckpointUnusable."""
        if part not in self.parts:
            return None
        try:
            return read_state(self.path, part)
        except (OSError, ValueError) as error:
            raise CheckpointUnusable(f"{self.path}: {error}") from error


class Broken(Exception):
    """Why a folder isn't a whole checkpoint."""


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open a checkpoint and compare every part with its recorded size and hash. Raises Broken."""
    try:
        marker = json.loads((folder / MARKER).read_bytes())
        if marker["format"] != FORMAT:
            raise Broken(f"format {marker['format']}, this version reads {FORMAT}")
        files: dict[str, Any] = marker["files"]
        for name, recorded in files.items():
            path = folder / name
            if path.parent != folder or path.stat().st_size != recorded["size"]:
                raise Broken(f"{name} has another size than recorded")
            if _sha256(path) != recorded["sha256"]:
                raise Broken(f"the hash of {name} differs from the recorded one")
        parts = tuple(name.removesuffix(".json") for name in files if name.endswith(".json"))
        summary = Summary(**{field.name: marker[field.name] for field in fields(Summary)})
        return Checkpoint(folder, Identity(**marker["identity"]), summary, parts)
    except FileNotFoundError as error:
        raise Broken(f"{Path(str(error.filename)).name} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Broken(f"{MARKER} can't be read: {error}") from error


def require_same(checkpoint: Checkpoint, identity: Identity) -> None:
    """Refuse a checkpoint of something else. Raises CheckpointMismatch naming what differs."""
    saved, wanted = asdict(checkpoint.identity), asdict(identity)
    differing = [
        f"{field.replace('_', ' ')} {saved[field]} (this run has {wanted[field]})"
        for field in saved
        if saved[field] != wanted[field]
    ]
    if differing:
        raise CheckpointMismatch(
            f"{checkpoint.path} is a checkpoint of another training: it has {', '.join(differing)}. "
            "Use its own manifest, or start in another run directory"
        )


def write_checkpoint(
    temporary: Path, final: Path, identity: Identity, summary: Summary, parts: Mapping[str, State]
) -> Checkpoint:
    """Fill a folder that will be renamed to `final`. Raises OSError."""
    files = {
        path.name: {"size": path.stat().st_size, "sha256": _sha256(path)}
        for part, state in parts.items()
        for path in write_state(temporary, part, state)
    }
    marker = {
        "format": FORMAT,
        "saved_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "identity": asdict(identity),
        **asdict(summary),
        "files": files,
    }
    # Last, so that a folder without it is known not to be whole.
    with (temporary / MARKER).open("wb") as file:
        file.write(json.dumps(marker, indent=1).encode())
        flush(file)
    return Checkpoint(final, identity, summary, tuple(parts))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
