"""When a node's membership of its Ray cluster is over."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rltrain.runtime import node
from rltrain.runtime.node import watch
from rltrain.runtime.pod import Pod


@pytest.fixture
def starter() -> Iterator["subprocess.Popen[bytes]"]:
    """Stands for `ray start --block`, which stays whatever becomes of what it has started."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def pod(gcs: socket.socket, raylet: socket.socket, folder: Path) -> Pod:
    names = ("JOB_NAME", "JOB_NAMESPACE", "JOB_UID", "POD_NAME", "POD_UID")
    return Pod.from_environment(
        {f"RLTRAIN_{name}": "x" for name in names}
        | {
            "RLTRAIN_ROLE": "workers",
            "RLTRAIN_POD_IP": "127.0.0.1",
            "RLTRAIN_HEAD": "127.0.0.1",
            "RLTRAIN_OBJECT_STORE_BYTES": "100000000",
            "RLTRAIN_GCS_PORT": str(gcs.getsockname()[1]),
            "RLTRAIN_NODE_MANAGER_PORT": str(raylet.getsockname()[1]),
            "RLTRAIN_FINISHED_FLAG": str(folder / "finished"),
        }
    )


def watched(
    here: Pod, starter: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch, *, at: int, then: Callable[[], None]
) -> tuple[str, int]:
    """What ended the membership, and how often it had asked the raylet; at one of these times something is done."""
    looked = 0
    reached = node.answers

    def answers(address: str, port: int) -> bool:
        nonlocal looked
        looked += port == here.node_manager_port
        if looked == at:
            then()
        return reached(address, port)

    monkeypatch.setattr(node, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(node, "answers", answers)
    return watch(here, starter, "127.0.0.1"), looked


def test_a_node_without_its_raylet_joins_again_though_what_started_it_stays(
    starter: "subprocess.Popen[bytes]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gcs, socket.create_server(("127.0.0.1", 0)) as raylet:
        here = pod(gcs, raylet, tmp_path)
        why, looked = watched(here, starter, monkeypatch, at=3, then=raylet.close)
    assert why == "its raylet is gone"
    assert looked == 2 + node.REFUSALS
    assert starter.poll() is None


def test_a_raylet_that_takes_its_time_to_come_up_is_waited_for(
    starter: "subprocess.Popen[bytes]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gcs, socket.create_server(("127.0.0.1", 0)) as raylet:
        here = pod(gcs, raylet, tmp_path)
    with socket.create_server(("127.0.0.1", here.gcs_port)):
        why, _ = watched(here, starter, monkeypatch, at=3 * node.REFUSALS, then=here.finished_flag.touch)
    assert why == "finished"
