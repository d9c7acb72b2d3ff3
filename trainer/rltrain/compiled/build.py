"""Build: a process beside this one that compiles functions, one such process at a time on a machine."""

import fcntl
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import torch

from rltrain.compiled.function import Signature
from rltrain.compiled.store import folder


@dataclass(frozen=True)
class Request:
    """A function of the object to be made, the arguments that it is compiled for, and where the code goes."""

    name: str
    signature: Signature
    path: Path


@dataclass(frozen=True)
class Work:
    """What the process is told: see `rltrain.compiled.__main__`.

    Attributes:
        make: makes the object whose functions they are.
        threads: of torch.
        nice: steps by which it gives way to whatever else runs on the machine.
    """

    make: Callable[[], Any]
    requests: tuple[Request, ...]
    threads: int
    nice: int


def why_not() -> str | None:
    """Why nothing can be compiled here; None where it can."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        return f"there is no C++ compiler ({compiler}) here"
    try:
        folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"compiled code can't be kept in {folder()}: {error.strerror}"
    return None if os.access(folder(), os.W_OK) else f"{folder()} can't be written to"


class Build:
    """A compiling process, which ends with this one."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process, self._errors = process, errors

    @classmethod
    def begin(cls, make: Callable[[], Any], requests: Sequence[Request], *, nice: int) -> Self | None:
        """Start one, unless another one is at work on this machine."""
        with (folder() / "lock").open("ab") as lock, tempfile.TemporaryFile() as work:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            # Between two of our own processes; never read from what is stored.
            pickle.dump(Work(make, tuple(requests), torch.get_num_threads(), nice), work)
            work.seek(0)
            errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
            process = subprocess.Popen(
                [sys.executable, "-m", "rltrain.compiled"],
                stdin=work,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[lock.fileno()],  # so the lock is held for as long as the process lives
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            return cls(process, errors)

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self._process.poll() is None

    def failure(self) -> str | None:
        """Why it failed, once it has ended."""
        if self._process.returncode == 0:
            return None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the compiling process ended with {self._process.returncode}"
