"""The node: one process in pid, mount and network namespaces of its own, in which all else runs.

Ending that process ends every process of the cluster, and with them go its mounts, links and packet filters:
the kernel does the tidying, also after a crash.
"""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .layout import (
    CGROUP,
    HOST_ADDRESS,
    HOST_LINK,
    NODE_ADDRESS,
    PREFIX_LENGTH,
    RUNTIME,
    SERVICE_RANGE,
    STATE,
)
from .shell import TestbedError, run, wait_until

RECORD = RUNTIME / "node.json"
# Folders that Kubernetes' programs write to wherever they run: the node has its own of each.
FOLDERS = {
    Path("/var/lib/kubelet"): STATE / "node/kubelet",
    Path("/var/lib/containerd"): STATE / "node/containerd",
    Path("/var/lib/cni"): STATE / "node/cni",
    Path("/var/log/pods"): STATE / "node/pod-logs",
    Path("/var/log/containers"): STATE / "node/container-logs",
    Path("/run/containerd"): RUNTIME / "containerd",
    Path("/run/netns"): RUNTIME / "netns",
}
# By default all pods together weigh as much as any other group of the machine's processes, so that other work beside a
# test would starve them: eight times that, in either version of cgroups.
CPU_WEIGHTS = {"cpu.shares": "8192", "cpu.weight": "800"}
# Kernel settings that a kubelet changes for the whole machine; they are put back in the end.
SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


@dataclass(frozen=True)
class Node:
    """A started node, as recorded outside the checkout that started it."""

    pid: int
    start_ticks: int  # tells the process from a later one of the same number
    state: str  # the folder of its files
    settings: dict[str, str]  # kernel settings before it started
    created: list[str]  # folders that had to be made on the machine to mount something over them

    @property
    def alive(self) -> bool:
        """Whether the node's first process still runs."""
        return start_ticks(self.pid) == self.start_ticks

    def programs(self) -> dict[str, int]:
        """The programs that run in the node's own pid namespace, pods' not among them, with a process of each."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended since it was listed
                if (process / "ns/pid").readlink() == Path(f"/proc/{self.pid}/ns/pid").readlink():
                    found[(process / "exe").readlink().name] = int(process.name)
        return found

    def enter(self, *command: str | Path) -> list[str]:
        """The words that run a command inside the node."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--", *map(str, command)]

    def run(self, *command: str | Path, check: bool = True) -> str:
        """Run a command inside the node; its output."""
        return run(*self.enter(*command), check=check)

    def start(self, command: list[str], log: Path) -> None:
        """Start a program inside the node that lives until the node ends."""
        path = f"{STATE / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        with log.open("a") as output:
            subprocess.run(
                self.enter("setsid", "--fork", *command),
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": path, "HOME": "/root"},
            )


def start_ticks(pid: int) -> int | None:
    """When the process started, in the kernel's ticks; None when there is none, or only a zombie."""
    try:
        # The program's name, in parentheses, may itself hold spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def recorded() -> Node | None:
    """The node of this machine, if one was started and not taken down; it may be dead."""
    try:
        return Node(**json.loads(RECORD.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise TestbedError(f"{RECORD} can't be read ({error}): remove it once no cluster runs") from error


def create(init: Path) -> Node:
    """Start the node's first process and give it its mounts and its network."""
    created = [str(folder) for folder in FOLDERS if not folder.exists()]
    for inside, outside in FOLDERS.items():
        inside.mkdir(parents=True, exist_ok=True)
        outside.mkdir(parents=True, exist_ok=True)
    settings = {name: text.read_text().strip() for name in SETTINGS if (text := Path("/proc/sys", name)).exists()}
    launcher = subprocess.Popen(
        [
            *("unshare", "--fork", "--kill-child", "--pid", "--mount", "--net", "--mount-proc"),
            *("--propagation", "private", str(init)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    wait_until("the node's first process", lambda: bool(children.read_text()), 10, lambda: "unshare failed")
    pid = int(children.read_text())
    node = Node(pid, start_ticks(pid) or 0, str(STATE), settings, created)
    RUNTIME.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(asdict(node), indent=1))
    wait_until(
        "the node's program", lambda: Path(f"/proc/{pid}/exe").resolve() == init.resolve(), 10, lambda: str(init)
    )
    _mount(node)
    _connect(node)
    return node


def _mount(node: Node) -> None:
    for inside, outside in FOLDERS.items():
        node.run("mount", "--bind", outside, inside)
    node.run("mount", "--make-rshared", "/")  # of the node's own copy; pods' volumes need it
    for controller in _cgroup_roots():
        (controller / CGROUP).mkdir(exist_ok=True)
        for name, value in CPU_WEIGHTS.items():
            if (weight := controller / CGROUP / name).exists():
                weight.write_text(value)


def _connect(node: Node) -> None:
    run("ip", "link", "add", HOST_LINK, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
    run("ip", "address", "add", f"{HOST_ADDRESS}/{PREFIX_LENGTH}", "dev", HOST_LINK)
    run("ip", "link", "set", HOST_LINK, "up")
    node.run("ip", "link", "set", "lo", "up")
    node.run("ip", "address", "add", f"{NODE_ADDRESS}/{PREFIX_LENGTH}", "dev", "eth0")
    node.run("ip", "link", "set", "eth0", "up")
    # No way out of the machine: tests can't come to depend on the internet. The services' addresses need
    # a route all the same, for the node's own connections look one up before they are redirected.
    node.run("ip", "route", "add", SERVICE_RANGE, "dev", "eth0")
    node.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")


def destroy(node: Node) -> None:
    """End the node with all that runs in it, and put the machine back as it was."""
    if node.alive:
        os.kill(node.pid, signal.SIGKILL)
        wait_until("the node's end", lambda: not node.alive, 60, str)
    wait_until("the end of the pods' processes", lambda: not cgroup_processes(), 60, lambda: str(cgroup_processes()))
    run("ip", "link", "delete", HOST_LINK, check=False)  # gone already if its other end is
    for controller in _cgroup_roots():
        for folder, _, _ in os.walk(controller / CGROUP, topdown=False):
            Path(folder).rmdir()
    for name, value in node.settings.items():
        Path("/proc/sys", name).write_text(value)
    state = Path(node.state)
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    if inside := [point for point in mounted if Path(point).is_relative_to(state)]:
        raise TestbedError(f"still mounted, so nothing is removed: {inside}")
    for folder in node.created:
        with suppress(OSError):  # someone else's by now
            Path(folder).rmdir()
    shutil.rmtree(state, ignore_errors=True)
    shutil.rmtree(RUNTIME)


def cgroup_processes() -> list[int]:
    """The processes in the pods' cgroups."""
    return [
        int(pid)
        for controller in _cgroup_roots()
        for listing in (controller / CGROUP).rglob("cgroup.procs")
        for pid in listing.read_text().split()
    ]


def _cgroup_roots() -> list[Path]:
    """The mounted cgroup hierarchies: one in version 2, one a controller in version 1."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return [root]
    return [path for path in root.iterdir() if path.is_dir() and not path.is_symlink()]
