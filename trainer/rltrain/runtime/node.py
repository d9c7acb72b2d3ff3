"""`rltrain node`: keeps a pod joined to its job's Ray cluster, whatever becomes of the head.

It rejoins inside the same container, so that neither the kubelet's nor the Job controller's back-off ever applies.
"""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from types import FrameType
from typing import Final, Literal

from rltrain.api import names
from rltrain.runtime.pod import Pod, start_ray
from rltrain.runtime.processes import adopt_orphans, kill_descendants
from rltrain.runtime.session import prepare_environment

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5
CONNECT_SECONDS: Final = 2.0
LEAVE_SECONDS: Final = 5.0
REFUSALS: Final = 6
"""Probes in a row without an answer from the head's control store, after which it is taken for gone."""
MOVES: Final = 4
"""Probes in a row that find the head's name at another address."""


def keep_joined() -> int:
    """Join and rejoin until the job is finished. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    prepare_environment()
    pod = Pod.from_environment()
    adopt_orphans()
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, _terminate)
    while not pod.finished_flag.exists():
        address = wait_for_head(pod)
        if address is None:
            break
        log.info("joining the head at %s", address)
        child = start_ray(
            pod,
            f"--address={address}:{pod.gcs_port}",
            "--num-cpus=1",  # processes kept ready; actors take slots, not CPUs
            '--resources={"slot":1}',
        )
        why = watch(pod, child, address)
        if why == "finished":
            # Says goodbye, where a killed one would be reported as lost.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.terminate()
                child.wait(LEAVE_SECONDS)
        kill_descendants()
        if why == "finished":
            break
        log.info("%s: joining again", why)
        time.sleep(POLL_SECONDS)
    log.info("the job is finished")
    return names.EXIT_DONE


def wait_for_head(pod: Pod) -> str | None:
    """Address at which the head's control store answers; None once the job is finished. Resolves anew at each try."""
    told = False
    while not pod.finished_flag.exists():
        address = resolve(pod.head)
        if address is not None and answers(address, pod.gcs_port):
            return address
        if not told:
            log.info("waiting for the head %s%s", pod.head, "" if address else " (its name has no address yet)")
            told = True
        time.sleep(POLL_SECONDS)
    return None


def watch(
    pod: Pod, child: "subprocess.Popen[bytes]", address: str
) -> Literal["finished", "Ray has ended", "its raylet is gone", "the head is gone", "the head has moved"]:
    """Wait until this membership is over, and say why."""
    refused = moved = silent = 0
    joined = False
    while True:
        if pod.finished_flag.exists():
            return "finished"
        if child.poll() is not None:
            return "Ray has ended"
        # A raylet whose agents have died ends by SIGTERM, which `ray start --block` takes for a wish and stays.
        here = answers(pod.ip, pod.node_manager_port)
        joined = joined or here
        silent = silent + 1 if joined and not here else 0
        if silent >= REFUSALS:
            return "its raylet is gone"
        refused = 0 if answers(address, pod.gcs_port) else refused + 1
        # No answer from the name service says nothing about the head.
        moved = moved + 1 if resolve(pod.head) not in (address, None) else 0
        if refused >= REFUSALS:
            return "the head is gone"
        if moved >= MOVES or (moved and refused):
            return "the head has moved"
        time.sleep(POLL_SECONDS)


def resolve(name: str) -> str | None:
    """IPv4 or IPv6 address of a name, if it has one now."""
    with contextlib.suppress(OSError):
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    return None


def answers(address: str, port: int) -> bool:
    """Whether something accepts connections there."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=CONNECT_SECONDS):
        return True
    return False


def _terminate(number: int, frame: FrameType | None) -> None:
    """At once, and not with 0: a pod that exits 0 counts as finished, and would complete its Job in mid-training."""
    kill_descendants()
    os._exit(names.EXIT_TERMINATED)
