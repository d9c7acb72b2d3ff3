"""What goes wrong: each fault is done to the scene, and undone where nobody else would."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.scene import APEX, DQN, RANKS, SMALL_BYTES, Scene, lives
from e2e.kube import condition, message, reason
from e2e.standin import standin
from testbed import configs, layout, onenode


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        name: what is lost.
        healer: what is to heal it.
        strike: does it; returns once it is done and, where people must, undone.
    """

    name: str
    healer: str
    strike: Callable[[Scene], None]


def _lose(job: str, role: str) -> Callable[[Scene], None]:
    return lambda scene: scene.lose(job, role)


def _kill(job: str, role: str, words: str) -> Callable[[Scene], None]:
    """End processes of a pod, from outside."""

    def strike(scene: Scene) -> None:
        for pid in _processes(scene.pod(job, role), words):
            os.kill(pid, signal.SIGKILL)

    return strike


def _driver(scene: Scene) -> None:
    """The driver ends without a word; until its pod has failed all looks well."""
    pod = scene.pod(APEX, "head")
    _kill(APEX, "head", "rltrain head")(scene)

    def has_failed() -> bool:
        found = scene.kube.get("pod", pod)
        return found is None or not lives(found)

    scene.wait("its pod has failed", has_failed, 60)


def _processes(pod: str, words: str) -> list[int]:
    """Processes of a pod whose command line has these words. Raises AssertionError where there is none."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"RLTRAIN_POD_NAME={pod}\0".encode() in environment and words in command.replace(b"\0", b" ").decode():
            found.append(int(folder.name))
    assert found, f"no process of {pod} is called {words}"
    return found


def _hang(scene: Scene) -> None:
    """A worker's process stands still for half a minute."""
    pids = _processes(scene.pod(DQN, "rollouts"), "ray::")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(30)
    for pid in pids:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGCONT)


def _without(program: str, seconds: float, meanwhile: Callable[[Scene], None] | None = None) -> Callable[[Scene], None]:
    """A program of the node is gone for a while."""

    def strike(scene: Scene) -> None:
        commands = {
            **configs.control_plane(onenode.FILES),
            **configs.runtime(onenode.FILES),
            **configs.workers(onenode.FILES),
        }
        scene.machine.run("pkill", "-9", "-x", program[:15])
        if meanwhile is not None:
            meanwhile(scene)
        time.sleep(seconds)
        onenode.start(scene.machine, {program: commands[program]})
        if program == "kube-apiserver":
            scene.wait("the API server", onenode.healthy, 120)

    return strike


def _while_it_makes_a_job(scene: Scene) -> None:
    """The operator dies again and again while a job is made; the job is whole all the same, and once."""
    scene.kube.apply(standin("newcomer", scene.images.operator))
    for _ in range(3):
        time.sleep(0.3)
        scene.operator.kill()
        time.sleep(3)
    scene.wait("the new job", lambda: condition(scene.kube.job("newcomer"), "ClusterReady") == "True", 180)
    assert len(scene.kube.pods("newcomer")) == 2, "nothing is there twice"
    scene.kube.delete("rltj", "newcomer")


def _drain(scene: Scene) -> None:
    scene.kube.kubectl("cordon", layout.NODE)
    try:
        drain = ("drain", layout.NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
        scene.kube.kubectl(*drain, "--pod-selector=rltrain.dev/job")
        for job in (APEX, RANKS, DQN):
            scene.wait("it is told", lambda job=job: reason(scene.kube.job(job), "ClusterReady") == "Unschedulable", 60)  # type: ignore[misc]
    finally:
        scene.kube.kubectl("uncordon", layout.NODE)


def _image(scene: Scene) -> None:
    """Neither the node nor its registry has the image for a while, in which a pod is lost."""
    ctr = (layout.BIN / "ctr", "--address", onenode.SOCKET, "--namespace", "k8s.io")
    scene.machine.run("pkill", "-9", "-x", "registry")
    scene.machine.run(*ctr, "images", "rm", scene.images.trainer)
    scene.lose(APEX, "rollouts")
    try:
        _told(scene, APEX, "ImagePullFailed", scene.images.trainer)
    finally:
        onenode.start(scene.machine, configs.image_registry(onenode.FILES))


def _quota(scene: Scene) -> None:
    """No room for another pod for a while, in which one is lost."""
    pods = len(json.loads(scene.kube.kubectl("get", "pods", "-o", "json"))["items"])
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "cut"},
        "spec": {"hard": {"pods": str(pods - 1)}},
    }
    scene.kube.apply(quota)
    try:
        scene.wait("it counts", lambda: (scene.kube.get("resourcequota", "cut") or {})["status"].get("used"), 30)
        scene.lose(DQN, "rollouts")
        _told(scene, DQN, "QuotaExceeded", "exceeded quota: cut")
    finally:
        scene.kube.delete("resourcequota", "cut")


def _token(scene: Scene) -> None:
    """The Secret goes, and a pod that would need it.

    The kubelet keeps what can't change for as long as a pod of its node uses it: it has to forget that too.
    """
    before = {pod["metadata"]["uid"] for pod in scene.kube.pods(RANKS)}
    scene.kube.delete("secret", f"{RANKS}-token")
    _without("kubelet", 0)(scene)
    scene.lose(RANKS, "workers")
    scene.wait(
        "other pods for all", lambda: before.isdisjoint(pod["metadata"]["uid"] for pod in scene.kube.pods(RANKS)), 180
    )


def _full(scene: Scene) -> None:
    """No room for a checkpoint for longer than their interval."""
    filler = onenode.VOLUMES / "chaos-small/filler"
    before = scene.saved(DQN)
    scene.machine.run("sh", "-c", f"head -c {SMALL_BYTES} /dev/zero > {filler} || true")
    head = scene.pod(DQN, "head")
    try:
        scene.wait("the driver says so", lambda: "No space left" in scene.kube.kubectl("logs", head, "--tail=200"), 120)
        steps = scene.steps(DQN)
        scene.wait("training goes on", lambda: scene.steps(DQN) > steps + 100, 60)
    finally:
        scene.machine.run("rm", "-f", filler)
    scene.wait("a newer checkpoint", lambda: (scene.saved(DQN) or 0) > (before or 0), 120)


def _lease(scene: Scene) -> None:
    """Somebody else takes the operator's lease, and never renews it."""
    leases = json.loads(scene.operator.kube.kubectl("get", "leases", "-o", "json"))["items"]
    assert leases, "the operator holds no lease"
    name = leases[0]["metadata"]["name"]
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    stolen = {"spec": {"holderIdentity": "a-thief", "renewTime": now, "acquireTime": now}}
    scene.operator.kube.kubectl("patch", "lease", name, "--type", "merge", "-p", json.dumps(stolen))

    def is_back() -> bool:
        found = scene.operator.kube.get("lease", name)
        return found is not None and found["spec"].get("holderIdentity") not in ("a-thief", "", None)

    scene.wait("a leader again", is_back, 180)


def _told(scene: Scene, job: str, why: str, words: str) -> None:
    """The job says why it lacks a pod, in the words of whoever refuses it."""

    def told() -> bool:
        found = scene.kube.job(job)
        return reason(found, "ClusterReady") == why and words in message(found, "ClusterReady")

    scene.wait(f"{job} says {why}", told, 120)


FAULTS = (
    Fault("operator's pod", "its Deployment", lambda scene: scene.operator.kill()),
    Fault("operator, while it makes a job", "its Deployment", _while_it_makes_a_job),
    Fault("operator's lease", "its expiry", _lease),
    Fault("API server for 60 s", "-", _without("kube-apiserver", 60)),
    Fault(
        "controller-manager for 30 s, and a head",
        "the Job controller, once it is back",
        _without("kube-controller-manager", 30, _lose(DQN, "head")),
    ),
    Fault("head's pod (DQN)", "the Job controller; resumes from a checkpoint", _lose(DQN, "head")),
    Fault("head's pod (DD-PPO)", "the Job controller; resumes from a checkpoint", _lose(RANKS, "head")),
    Fault("driver's process (Ape-X)", "the Job controller; resumes", _driver),
    Fault("learner's pod", "the Job controller, the driver", _lose(APEX, "learners")),
    Fault("replay shards' pod", "the Job controller, the driver", _lose(APEX, "replay")),
    Fault("rank's pod", "the Job controller, the driver", _lose(RANKS, "workers")),
    Fault("rank's process", "the driver", _kill(RANKS, "workers", "ray::")),
    Fault("rollouts' pod", "the Job controller, the driver", _lose(APEX, "rollouts")),
    Fault("raylet of a rollouts pod", "its container, the driver", _kill(DQN, "rollouts", "raylet")),
    Fault("rollout worker stands still for 30 s", "-", _hang),
    Fault("node cordoned and drained", "the Job controller, once there is a node", _drain),
    Fault("kubelet for 20 s", "-", _without("kubelet", 20)),
    Fault("containerd for 5 s", "-", _without("containerd", 5)),
    Fault("image, and a pod", "the kubelet, once the image is there", _image),
    Fault("quota cut, and a pod", "the Job controller, once there is room", _quota),
    Fault("token's Secret, the kubelet's memory, a pod", "the operator: all pods anew, from a checkpoint", _token),
    Fault("room for checkpoints", "the driver, once there is room", _full),
)
