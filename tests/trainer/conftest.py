"""What all trainer tests share."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from rltrain.runtime.session import local_session, prepare_environment

if TYPE_CHECKING:
    from rltrain.flow.ray_backend import RayBackend

# Actors import the tests' own classes.
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
# Before anything imports Ray: the token, and one thread a process.
prepare_environment()

# One thread each, as in a worker: on busy cores several wait for one another far longer than they compute.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One embedded Ray for all tests that need one; starting it is what takes time."""
    with local_session(64):
        yield


@pytest.fixture
def ray_backend(ray_session: None) -> "Iterator[RayBackend]":
    """Actors of a test, ended with it."""
    from rltrain.flow.ray_backend import RayBackend

    backend = RayBackend()
    yield backend
    for actor in list(backend.actors):
        backend.kill(actor)
