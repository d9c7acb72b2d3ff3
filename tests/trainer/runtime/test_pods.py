"""Head and node as two processes of one machine: what they do when the head is killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rltrain.api.names import ROLES
from trainer.runtime.processes import kill_tree

MANIFEST = """
apiVersion: rltrain.dev/v1alpha1
kind: RLTrainingJob
metadata: {name: pods}
spec:
  plan: DQN
  env: {id: CartPole-v1}
  config:
    num_envs_per_worker: 4
    learning_starts: 200
    buffer_size: 5000
    min_time_s_per_reporting: 0
    timesteps_per_iteration: 200
    model: {fcnet_hiddens: [16]}
    hiddens: [16]
  rollouts: {replicas: 1}
  stop: {envSteps: 10000000}
  checkpoint: {everySeconds: 0.2, keep: 1000}
"""
APEX = """
apiVersion: rltrain.dev/v1alpha1
kind: RLTrainingJob
metadata: {name: pods}
spec:
  plan: Apex
  env: {id: CartPole-v1}
  config:
    num_envs_per_worker: 4
    rollout_fragment_length: 16
    learning_starts: 200
    buffer_size: 5000
    train_batch_size: 16
    training_intensity: 1
    min_time_s_per_reporting: 0
    timesteps_per_iteration: 200
    optimizer: {num_replay_buffer_shards: 2}
    model: {fcnet_hiddens: [16]}
    hiddens: [16]
  rollouts: {replicas: 1}
  replay: {replicas: 1}
  learners: {replicas: 1}
  stop: {envSteps: 10000}
  checkpoint: {everySeconds: 1}
"""
PATIENCE = 120
"""Seconds after which a test that waits gives up; nothing is measured by it."""


BLOCK = 1000
"""Ports that a machine has for itself."""


def free_ports(count: int, first: int) -> list[int]:
    """Ports from `first` on that nobody has."""
    found: list[int] = []
    for port in range(first, first + 10 * count):
        with socket.socket() as each, contextlib.suppress(OSError):
            each.bind(("127.0.0.1", port))
            found.append(port)
    return found[:count]


def claim_block() -> socket.socket:
    """Holds the last port of a block, whose others are then left alone by other machines.

    They lie below what the kernel gives out by itself, or Ray's own choices could fall into them.
    """
    for first in range(10_000, 30_000, BLOCK):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", first + BLOCK - 1))
        except OSError:
            claim.close()
        else:
            return claim
    raise AssertionError("no ports are left")


class Machine:
    """Starts "pods" that share a folder and a loopback interface."""

    def __init__(self, folder: Path, manifest: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir()
        (folder / "home").mkdir()
        self.manifest = folder / "job.yaml"
        self.manifest.write_text(manifest)
        self.claim = claim_block()
        self._first = self.claim.getsockname()[1] + 1 - BLOCK
        places = len(ROLES) + 1  # one for a role's second pod
        self.gcs, *self._ports = free_ports(1 + 4 * places, self._first + 100 * places)
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, role: str, index: int = 0) -> "subprocess.Popen[bytes]":
        place = ROLES.index(role) if index == 0 else len(ROLES)
        names = ("NODE_MANAGER", "OBJECT_MANAGER", "RUNTIME_ENV_AGENT", "METRICS_EXPORT")
        ports = {f"RLTRAIN_{name}_PORT": str(self._ports[4 * place + at]) for at, name in enumerate(names)}
        low = self._first + 100 * place
        environment = {
            **os.environ,
            **ports,
            "RLTRAIN_MIN_WORKER_PORT": str(low),
            "RLTRAIN_MAX_WORKER_PORT": str(low + 99),
            "RLTRAIN_GCS_PORT": str(self.gcs),
            "RLTRAIN_JOB_NAME": "pods",
            "RLTRAIN_JOB_NAMESPACE": "default",
            "RLTRAIN_JOB_UID": "uid",
            "RLTRAIN_ROLE": role,
            "JOB_COMPLETION_INDEX": str(index),
            "RLTRAIN_POD_NAME": f"pods-{role}-{index}",
            "RLTRAIN_POD_UID": f"{role}-{len(self.started)}",
            "RLTRAIN_POD_IP": "127.0.0.1",
            "RLTRAIN_HEAD": "localhost",
            "RLTRAIN_OBJECT_STORE_BYTES": str(100 * 1024 * 1024),
            "RLTRAIN_MANIFEST": str(self.manifest),
            "RLTRAIN_DATA": str(self.data),
            "RLTRAIN_RAY_FOLDER": str(self.folder / "ray"),
            "RLTRAIN_FINISHED_FLAG": str(self.folder / f"finished-{role}"),
            "RLTRAIN_TERMINATION_LOG": str(self.folder / "termination"),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef",
            "HOME": str(self.folder / "home"),
        }
        command = "head" if role == "head" else "node"
        code = f"from rltrain.cli.{command} import {command}; {command}()"
        log = (self.folder / f"{role}-{len(self.started)}.log").open("wb")
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.folder.glob("*.log")))

    def wait(self, what: str, condition: Callable[[], object], *alive: "subprocess.Popen[bytes]") -> None:
        """Until a condition holds, as long as the processes that should bring it about are alive."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            dead = [process.returncode for process in alive if process.poll() is not None]
            assert not dead, f"{what}: a process ended with {dead} before\n{self.logs()}"
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s\n{self.logs()}"
            time.sleep(0.05)


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    # Ray's sockets need a short path.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pods-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder), getattr(request, "param", MANIFEST))
        try:
            yield machine
        finally:
            for process in machine.started:
                kill_tree(process.pid)
                process.wait()
            machine.claim.close()


def test_killed_head_is_followed_by_one_that_resumes_with_the_same_node_and_lets_it_leave(machine: Machine) -> None:
    node = machine.start("rollouts")
    first = machine.start("head")
    run = machine.data / "uid"
    machine.wait("three checkpoints", lambda: len(list(run.glob("checkpoints/*/checkpoint.json"))) >= 3, first)
    kill_tree(first.pid)
    assert first.wait() == -signal.SIGKILL
    assert not (run / "finished.json").exists()

    newest = max(path.parent.name for path in run.glob("checkpoints/*/checkpoint.json"))
    enough = int(newest.split("-")[0]) + 500
    machine.manifest.write_text(MANIFEST.replace("{envSteps: 10000000}", f"{{envSteps: {enough}}}"))
    second = machine.start("head")
    machine.wait("the second head's end", lambda: second.poll() is not None)
    assert second.returncode == 0, machine.logs()
    machine.wait("the node's end", lambda: node.poll() is not None)
    assert node.returncode == 0, machine.logs()

    termination = json.loads((machine.folder / "termination").read_text())
    assert termination["state"] == "Succeeded"
    assert termination["stop_reason"] == "env_steps"
    assert termination["reason"] == "StopCriterionReached"
    assert sorted(path.name for path in (run / "attempts").iterdir()) == ["0001.json", "0002.json"]
    results = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    resumed = next(result["resumed"] for result in results if "resumed" in result)
    assert resumed["env_steps"] > 0
    saved = json.loads((run / "checkpoints" / resumed["checkpoint"] / "checkpoint.json").read_text())
    assert resumed["hashes"] == saved["hashes"]
    assert {"replay", "priorities", "optimizer_step", "epsilon"} <= saved["hashes"].keys()
    steps = [result["env_steps"] for result in results]
    assert steps == sorted(steps)


def test_terminated_head_saves_and_exits_143(machine: Machine) -> None:
    run = machine.data / "uid"
    machine.start("rollouts")
    head = machine.start("head")
    machine.wait("a checkpoint", lambda: list(run.glob("checkpoints/*/checkpoint.json")), head)
    head.terminate()
    machine.wait("the head's end", lambda: head.poll() is not None)
    assert head.returncode == 143, machine.logs()
    termination = json.loads((machine.folder / "termination").read_text())
    assert termination["reason"] == "Terminated"
    newest = max(path.name for path in (run / "checkpoints").iterdir())
    assert termination["checkpoint"].endswith(newest)
    assert int(newest.split("-")[0]) == termination["env_steps"]


@pytest.mark.parametrize("machine", [APEX], indirect=True)
def test_ape_xs_shards_and_learner_are_where_their_roles_are_and_losing_those_machines_stops_nothing(
    machine: Machine,
) -> None:
    run = machine.data / "uid"
    nodes = {role: machine.start(role) for role in ("rollouts", "replay", "learners")}
    head = machine.start("head")

    def counters() -> dict[str, int]:
        lines = (run / "results.jsonl").read_text().splitlines() if (run / "results.jsonl").exists() else []
        found: dict[str, int] = json.loads(lines[-1])["counters"] if lines else {}
        return found

    machine.wait("updates", lambda: counters().get("num_env_steps_trained", 0) > 500, head, *nodes.values())
    machine.wait("a checkpoint", lambda: list(run.glob("checkpoints/*/checkpoint.json")), head)
    for role, lost, count in (("replay", "num_replay_shards_lost", 2), ("learners", "num_learners_lost", 1)):
        kill_tree(nodes[role].pid)
        nodes[role].wait()
        nodes[role] = machine.start(role)
        # A shard's loss is noticed when something is next asked of it, so two are noticed one after the other;
        # one that was made again there before Ray knew is lost again.
        machine.wait(f"the loss of the {role}", lambda: counters().get(lost, 0) >= count, head)  # noqa: B023
        trained = counters()["num_env_steps_trained"]
        machine.wait("more updates", lambda: counters()["num_env_steps_trained"] > trained + 200, head)  # noqa: B023
    machine.wait("both shards with what they held", lambda: counters().get("num_replay_shards_restored", 0) >= 2, head)
    assert "num_replay_shards_emptied" not in counters()
    machine.wait("the head's end", lambda: head.poll() is not None)
    assert head.returncode == 0, machine.logs()
    machine.wait("the nodes' end", lambda: all(node.poll() is not None for node in nodes.values()))
    assert [node.returncode for node in nodes.values()] == [0, 0, 0], machine.logs()


def test_the_driver_follows_its_manifest_and_lets_the_last_pod_go_without_missing_it(machine: Machine) -> None:
    run = machine.data / "uid"

    def workers() -> tuple[int, int]:
        lines = (run / "results.jsonl").read_text().splitlines() if (run / "results.jsonl").exists() else []
        last = json.loads(lines[-1]) if lines else {"num_wanted_workers": 0, "num_healthy_workers": 0}
        return last["num_wanted_workers"], last["num_healthy_workers"]

    def edit(replicas: int) -> None:
        new = machine.folder / "new.yaml"
        new.write_text(MANIFEST.replace("rollouts: {replicas: 1}", f"rollouts: {{replicas: {replicas}}}"))
        new.replace(machine.manifest)

    second = machine.start("rollouts", 1)  # it could take the first worker, were it not for its index
    first = machine.start("rollouts")
    head = machine.start("head")
    machine.wait("one worker", lambda: workers() == (1, 1), head)
    edit(2)
    machine.wait("two workers", lambda: workers() == (2, 2), head)
    edit(1)
    machine.wait("one worker again", lambda: workers() == (1, 1), head)
    kill_tree(second.pid)
    second.wait()
    count = len((run / "results.jsonl").read_text().splitlines())
    machine.wait(
        "more reports", lambda: len((run / "results.jsonl").read_text().splitlines()) > count + 10, head, first
    )
    assert workers() == (1, 1)
    counters = json.loads((run / "results.jsonl").read_text().splitlines()[-1])["counters"]
    assert not [name for name, count in counters.items() if count and "lost" in name], machine.logs()
