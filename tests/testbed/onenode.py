"""A one-node Kubernetes from its parts, for machines without Docker."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from . import configs, images, manifests, node, packages, parts, pki
from .cluster import link_programs
from .layout import BIN, CACHE, KUBECONFIG, LOGS, REGISTRY, STATE
from .oci import write_image
from .shell import TestbedError, run, step, tail, wait_until

FILES = STATE / "node"
VOLUMES = STATE / "volumes"
REGISTRY_DATA = CACHE / "registry"
SOCKET = "/run/containerd/containerd.sock"


class OneNode:
    """The cluster in one node; see node.py for what holds it together."""

    def up(self) -> None:
        """Bring it up, unless this checkout's cluster is up and well already."""
        if os.geteuid() != 0:
            raise TestbedError("the one-node cluster needs root; with a Docker engine there would be kind")
        packages.install(packages.NODE_PACKAGES)
        programs = parts.build_all((*parts.NODE_PARTS, parts.TINY, parts.HELM))
        known = node.recorded()
        if known and known.alive and known.state == str(STATE) and complete(known) and healthy():
            print("the cluster is up already")
            return
        self.down()
        with step("node"):
            link_programs(BIN, programs)
            LOGS.mkdir(parents=True)
            machine = node.create(programs["pause"].resolve())
            pki.make(FILES / "pki")
            images.trim_registry(REGISTRY_DATA)
            for name, content in configs.files(FILES, REGISTRY_DATA).items():
                (FILES / name).parent.mkdir(parents=True, exist_ok=True)
                (FILES / name).write_text(content)
        with step("control plane"):
            start(machine, configs.control_plane(FILES) | configs.image_registry(FILES))
            pki.write_kubeconfig(FILES / "pki", "admin", KUBECONFIG)
            wait_until("the API server", healthy, 120, lambda: logs("etcd", "kube-apiserver"))
        with step("kubelet"):
            start(machine, configs.runtime(FILES))
            socket = node.FOLDERS[Path(SOCKET).parent] / Path(SOCKET).name
            wait_until("containerd", socket.exists, 60, lambda: logs("containerd"))
            for name in ("pause", "coredns", "probe"):
                load(machine, programs[name], f"localhost/rltrain-testbed/{name}:1")
            start(machine, configs.workers(FILES))
            wait_until("the node", node_ready, 120, lambda: logs("kubelet", "containerd"))
        with step("network policies"):
            start(machine, {"kube-router": configs.policy_enforcer(FILES)})
            wait_until("the policies' chain", lambda: enforcing(machine), 60, lambda: logs("kube-router"))
        with step("DNS and volumes"):
            apply(*manifests.dns(), manifests.storage_class())
            self.volumes()
            kubectl("rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=120s")

    def down(self) -> None:
        """Remove this machine's one-node cluster, whichever checkout it belongs to."""
        if known := node.recorded():
            with step(f"remove the cluster in {known.state}"):
                node.destroy(known)
        # What an `up` left that failed before it had a node.
        shutil.rmtree(STATE, ignore_errors=True)

    def images(self, names: dict[str, str]) -> dict[str, str]:
        """Build with buildah, push to the node's registry, and have containerd pull."""
        machine = node.recorded()
        if machine is None or not machine.alive:
            raise TestbedError("the cluster is not up: python -m testbed up")
        packages.install(packages.IMAGE_PACKAGES)
        references = {}
        for name, tag in names.items():
            reference = f"{REGISTRY}/rltrain-{name}:{tag}"
            with step(f"build and push {reference}"):
                images.build_and_push(name, reference)
            with step(f"pull {reference}"):
                machine.run(
                    *(BIN / "ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "pull"),
                    *("--local", "--plain-http", reference),
                )
            references[name] = reference
        return references

    def publish(self, reference: str, tag: str) -> None:
        """Push to the node's registry, from which the kubelet pulls."""
        images.push(reference, images.retagged(reference, tag))

    def load(self, program: Path, reference: str) -> None:
        """Give containerd an image of the one program."""
        machine = node.recorded()
        if machine is None or not machine.alive:
            raise TestbedError("the cluster is not up: python -m testbed up")
        load(machine, program, reference)

    def volumes(self) -> None:
        """Make every volume that nobody holds anew, with an empty folder."""
        listed = json.loads(kubectl("get", "persistentvolumes", "--output=json"))["items"]
        phases = {item["metadata"]["name"]: item["status"].get("phase") for item in listed}
        free = [name for name in manifests.volume_names() if phases.get(name) not in ("Available", "Bound", "Pending")]
        if spent := [name for name in free if name in phases]:
            kubectl("delete", "persistentvolume", *spent, "--timeout=60s")
        for name in free:
            shutil.rmtree(VOLUMES / name, ignore_errors=True)
            (VOLUMES / name).mkdir(parents=True)
            (VOLUMES / name).chmod(0o777)  # for pods without an fsGroup
        if free:
            apply(*(manifests.volume(name, VOLUMES) for name in free))


def start(machine: node.Node, commands: dict[str, list[str]]) -> None:
    """Start programs in the node, each with a log of its own."""
    for name, command in commands.items():
        machine.start(command, LOGS / f"{name}.log")


def logs(*names: str) -> str:
    """The ends of the programs' logs."""
    return "\n".join(f"--- {name}\n{tail(LOGS / f'{name}.log')}" for name in names)


def kubectl(*words: str, input: str | None = None, check: bool = True) -> str:
    """Run kubectl against the cluster; its output."""
    return run(BIN / "kubectl", f"--kubeconfig={KUBECONFIG}", *words, input=input, check=check)


def apply(*objects: dict[str, object]) -> None:
    """Apply objects."""
    listing = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl("apply", "--server-side", "--filename=-", input=json.dumps(listing))


def complete(machine: node.Node) -> bool:
    """Whether each of the node's programs still runs."""
    commands = (configs.control_plane, configs.image_registry, configs.runtime, configs.workers)
    expected = [*(name for made in commands for name in made(FILES)), "kube-router"]
    return machine.programs().keys() >= set(expected)


def healthy() -> bool:
    """Whether the API server is ready."""
    return KUBECONFIG.exists() and kubectl("get", "--raw=/readyz", check=False).strip() == "ok"


def node_ready() -> bool:
    """Whether the node takes pods and has a range of addresses."""
    output = '--output=jsonpath={.items[*].spec.podCIDR} {.items[*].status.conditions[?(@.type=="Ready")].status}'
    return kubectl("get", "nodes", output, check=False).split()[1:] == ["True"]


def enforcing(machine: node.Node) -> bool:
    """Whether packets between pods pass the policies' chain."""
    return "KUBE-ROUTER-FORWARD" in machine.run("iptables", "-S", "FORWARD", check=False)


def load(machine: node.Node, program: Path, reference: str) -> None:
    """Give containerd an image of the one program."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "image.tar"
        write_image(program, reference, archive)
        machine.run(
            *(BIN / "ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "import", archive),
        )
