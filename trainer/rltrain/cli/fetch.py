"""`rltrain fetch`: a job's newest whole checkpoint, from its volume to this machine."""

import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer

from rltrain.api import names
from rltrain.api.errors import CheckpointUnusable, InvalidInput, RltrainError, StorageFull
from rltrain.cli.cluster import Cluster, connect
from rltrain.cli.jobs import JobView, get_job
from rltrain.cli.options import Context, Job, Json, Namespace
from rltrain.cli.reader import Reader, reader
from rltrain.cli.transfer import transfer

MARKER: Final = "checkpoint.json"
_NO_CHECKPOINT: Final = 66
_NO_BEST: Final = 67
_PRUNED: Final = 75
_TRIES: Final = 3
_MAX_ERROR_BYTES: Final = 64 << 10

# Runs in the pod, with nothing but the standard library. A checkpoint appears under its name at once, so the newest
# that has its marker is whole; one may be pruned while it is copied.
_SCRIPT: Final = f"""
import json, os, sys, tarfile
os.chdir(sys.argv[1])
def names(folder):
    try: return sorted(os.listdir(folder), reverse=True)
    except FileNotFoundError: return []
whole = [n for n in names("checkpoints") if n[:1].isdigit() and os.path.exists(f"checkpoints/{{n}}/{MARKER}")]
if not whole: sys.exit({_NO_CHECKPOINT})
chosen = whole[0]
if sys.argv[2:] == ["best"]:
    try: chosen = json.load(open("checkpoints/best.json"))["checkpoint"]
    except FileNotFoundError: sys.exit({_NO_BEST})
    if chosen not in whole: sys.exit({_NO_BEST})
files = [n for n in ("manifest.yaml", "results.jsonl", "finished.json") if os.path.exists(n)]
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|gz", format=tarfile.PAX_FORMAT) as tar:
    try:
        for name in [*files, f"checkpoints/{{chosen}}"]: tar.add(name)
    except FileNotFoundError: os._exit({_PRUNED})
"""


@dataclass(frozen=True)
class Fetched:
    """A checkpoint that is as it was saved."""

    name: str
    env_steps: int
    trained_steps: int


def fetch(
    job: Job,
    namespace: Namespace = None,
    context: Context = None,
    output: Json = None,
    best: Annotated[bool, typer.Option("--best", help="The job's best checkpoint, not its newest.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to make; ./<job> by default.", show_default=False)
    ] = None,
) -> None:
    """Copy a job's newest checkpoint, or its best one, with manifest and results from its volume."""
    folder = out if out is not None else Path(job)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is there already: give another --out, or remove it")
    cluster = connect(context, namespace)
    found = get_job(cluster, job)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
            copy = Path(temporary) / "run"
            with (
                reader(cluster, found) as pod,
                tempfile.TemporaryFile(dir=temporary) as archive,
                transfer(f"fetching {job}") as advance,
            ):
                _download(cluster, pod, found, archive, advance, best)
                archive.seek(0)
                unpack(archive, copy)
            fetched = verify(copy)
            if folder.exists():
                folder.rmdir()
            shutil.move(copy, folder)
    except OSError as error:
        raise StorageFull(f"can't write to {folder}: {error.strerror or error}; choose another --out") from error
    typer.echo(_conclude(folder, fetched, output))


def _conclude(folder: Path, fetched: Fetched, output: str | None) -> str:
    if output == "json":
        places = {"folder": str(folder), "checkpoint": str(folder / "checkpoints" / fetched.name)}
        return json.dumps({**places, "env_steps": fetched.env_steps, "trained_steps": fetched.trained_steps})
    # What learns from data alone takes no steps in an environment.
    count = f"{fetched.env_steps} steps" if fetched.env_steps else f"{fetched.trained_steps} trained steps"
    return f"{folder}: checkpoint at {count} (rltrain evaluate {folder} plays it)"


def _download(
    cluster: Cluster, pod: Reader, job: JobView, archive: IO[bytes], advance: Callable[[int], None], best: bool
) -> None:
    """The archive that the script makes of the job's folder."""
    for _ in range(_TRIES):
        archive.seek(0)
        archive.truncate()
        code, said = _run_script(cluster, pod, job, archive, advance, best)
        if code != _PRUNED:
            break
    if code == _NO_CHECKPOINT:
        raise CheckpointUnusable(f"{job.name} has no whole checkpoint yet: {job.why or 'it is about to start'}")
    if code == _NO_BEST:
        raise InvalidInput(f"{job.name} has no best checkpoint: a job with spec.checkpoint.keepBest: true marks one")
    if code != 0:
        last = said.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
        raise RltrainError(f"reading the volume in pod {pod.pod} failed: {last[-1]}; try again")


def _run_script(
    cluster: Cluster, pod: Reader, job: JobView, archive: IO[bytes], advance: Callable[[int], None], best: bool
) -> tuple[int, bytes]:
    """Exit code and last words."""
    command = ["python", "-c", _SCRIPT, f"{names.DATA_PATH}/{job.uid}", *(["best"] if best else [])]
    channels: Any = cluster.execute(pod.pod, pod.container, command)
    said = b""
    try:
        is_open = True
        while is_open:
            channels.update(timeout=30)
            # What came with the end is still to be read.
            is_open = channels.is_open()
            advance(archive.write(_taken(channels.read_stdout(timeout=0))))
            said = (said + _taken(channels.read_stderr(timeout=0)))[-_MAX_ERROR_BYTES:]
        return _exit_code(channels), said
    finally:
        channels.close()


def _taken(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data or b"")


def _exit_code(channels: Any) -> int:
    try:
        return int(channels.returncode)
    except (TypeError, KeyError, IndexError, ValueError):
        # The connection was lost, or the process was killed: nobody says with which code.
        return 1


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Unpack below a folder; what leads out of it, and all but files and folders, is refused.

    Raises:
        CheckpointUnusable: the archive isn't one, or isn't what a job makes.
    """
    folder.mkdir()
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            for member in tar:
                if not (member.isreg() or member.isdir()):
                    raise CheckpointUnusable(f"the volume holds {member.name}, which is neither file nor folder")
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise CheckpointUnusable(f"what came from the volume isn't whole: {error}; try again") from error


def verify(folder: Path) -> Fetched:
    """Compare every part of the checkpoint with its recorded size and hash.

    Raises:
        CheckpointUnusable: something isn't as it was saved.
    """
    (checkpoint,) = (folder / "checkpoints").iterdir()
    try:
        marker = json.loads((checkpoint / MARKER).read_bytes())
        for name, recorded in marker["files"].items():
            path = checkpoint / name
            if path.parent != checkpoint or path.stat().st_size != recorded["size"]:
                raise CheckpointUnusable(f"{name} of checkpoint {checkpoint.name} isn't as it was saved: try again")
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != recorded["sha256"]:
                    raise CheckpointUnusable(f"{name} of checkpoint {checkpoint.name} isn't as it was saved")
        return Fetched(checkpoint.name, int(marker["env_steps"]), int(marker["trained_steps"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointUnusable(f"checkpoint {checkpoint.name} isn't whole: {error}") from error
