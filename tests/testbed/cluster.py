"""What every cluster can do, and which one this machine gets."""

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from .layout import CLUSTER


class Cluster(Protocol):
    """A Kubernetes that the tests have to themselves; what is in it afterwards doesn't matter."""

    def up(self) -> None:
        """Bring it up, with working DNS, policies and volumes; quick when it is up already."""

    def down(self) -> None:
        """Remove it and everything that it left on the machine; also after a crash, also twice."""

    def images(self, names: dict[str, str]) -> dict[str, str]:
        """Build the named targets (name -> tag) and make them available; name -> reference to use in a pod."""

    def publish(self, reference: str, tag: str) -> None:
        """Make an image that is available so under another tag too."""

    def load(self, program: Path, reference: str) -> None:
        """Make an image of the one program available under that name."""

    def volumes(self) -> None:
        """Empty the volumes whose claims are gone, so that they can be claimed again."""


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other process of this machine changes the cluster."""
    lock = Path(tempfile.gettempdir()) / f"{CLUSTER}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def docker_answers() -> bool:
    """Whether there is a Docker engine to make a kind cluster with."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def choose() -> Cluster:
    """kind where a Docker engine answers, otherwise the one-node cluster."""
    from .kind import Kind
    from .onenode import OneNode

    return Kind() if docker_answers() else OneNode()


def link_programs(folder: Path, programs: dict[str, Path]) -> None:
    """Make folder hold links to exactly these programs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, program in programs.items():
        (folder / name).symlink_to(program)
