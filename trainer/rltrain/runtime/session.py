"""A Ray session: one embedded in this process, or the cluster that a head has started."""

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from rltrain.api.errors import TrainingFailed
from rltrain.runtime.processes import adopt_orphans, descendants, kill_descendants

log = logging.getLogger(__name__)

STARTS: Final = 3

OBJECT_STORE_BYTES: Final = 512 * 1024 * 1024
_SOCKET_ROOM: Final = 28
"""Longest temporary folder below which Ray's socket paths stay within the system's 107 characters."""


def prepare_environment() -> None:
    """What every process of a session must agree on, before Ray and torch are imported.

    Small networks learn fastest on one thread (more wait for each other at every layer); a user's own OMP_NUM_THREADS
    stands. Ray turns token authentication on by itself and keeps the token in the home folder, which may be missing,
    not writable or shared with another session: so mode and token are set here and inherited by all processes.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # By itself Ray gives all actors a niceness of 15: replay shards would starve beside anything else that runs.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # The control store would keep a record of each of the last 100,000 calls, a fifth of a gigabyte after minutes.
    os.environ.setdefault("RAY_task_events_report_interval_ms", "0")


@contextmanager
def local_session(slots: int, on_leaving: list[Callable[[], object]] | None = None) -> Iterator[None]:
    """Ray on this machine with `slots` places for actors; leaves no process and no file behind.

    Args:
        on_leaving: gets what must be done where the process leaves without unwinding.
    """
    prepare_environment()
    adopt_orphans()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import ray

    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="rltrain-", dir=parent if len(parent) < _SOCKET_ROOM else "/tmp"))
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    if on_leaving is not None:
        on_leaving.append(remove)
    before = descendants()
    try:
        _start(slots, folder)
        yield
    finally:
        ray.shutdown()
        kill_descendants(spared=before)  # some of Ray's would live on for a moment
        remove()


def _start(slots: int, folder: Path) -> None:
    """Raises TrainingFailed."""
    import ray

    before = descendants()
    for left in reversed(range(STARTS)):
        try:
            cast(Any, ray.init)(
                address="local",
                include_dashboard=False,
                num_cpus=1,
                resources={"slot": slots} if slots else None,
                labels={"role": "any", "index": "any"},
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                _node_ip_address="127.0.0.1",
                _temp_dir=str(folder / "r"),  # Ray lets everybody write to it, so it lies in a folder of ours
            )
            return
        except Exception as error:
            # Ray gives its own processes 30 s, which a busy machine may not keep; what it leaves is in the way.
            kill_descendants(spared=before)
            if not left:
                raise TrainingFailed(f"Ray doesn't start on this machine: {error}") from error
            log.warning("Ray didn't start, trying again: %s", str(error).splitlines()[0])


@contextmanager
def cluster_session(address: str) -> Iterator[None]:
    """The Ray cluster whose control store listens at `address` (host:port)."""
    prepare_environment()
    import ray

    cast(Any, ray.init)(
        address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False, namespace="rltrain"
    )
    try:
        yield
    finally:
        ray.shutdown()
