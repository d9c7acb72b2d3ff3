"""kind, the Kubernetes in Docker, for machines with a Docker engine."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from . import configs, images, parts
from .cluster import link_programs
from .layout import AUDIT_LOG, BIN, CLUSTER, KUBECONFIG, STATE
from .oci import write_image
from .shell import run, step

# Folder of this machine -> where the node sees it.
PATCHES, CONFIG, AUDIT = (STATE / "kind" / name for name in ("patches", "config", "audit"))
MOUNTS = {PATCHES: "/etc/kind-patches", CONFIG: "/etc/testbed", AUDIT: "/var/log/testbed"}


def api_server_patch() -> list[dict[str, Any]]:
    """A JSON patch of the API server's pod that turns its audit log on.

    kubeadm's own way to write flags differs between its versions, and kind picks the version: the pod is the same.
    """
    container = "/spec/containers/0"
    flags = configs.flags(
        audit_policy_file=f"{MOUNTS[CONFIG]}/audit.json",
        audit_log_path=f"{MOUNTS[AUDIT]}/audit.log",
        audit_log_maxsize=1000,
    )
    folders = {"testbed-config": MOUNTS[CONFIG], "testbed-audit": MOUNTS[AUDIT]}
    added: list[tuple[str, object]] = [(f"{container}/command/-", flag) for flag in flags]
    for name, path in folders.items():
        added.append((f"{container}/volumeMounts/-", {"name": name, "mountPath": path}))
        added.append(("/spec/volumes/-", {"name": name, "hostPath": {"path": path, "type": "Directory"}}))
    return [{"op": "add", "path": path, "value": value} for path, value in added]


def configuration() -> dict[str, Any]:
    """kind's configuration: one node that sees our folders, patches its API server, and places gangs."""
    mounts = [{"hostPath": str(host), "containerPath": inside} for host, inside in MOUNTS.items()]
    patches = {"kind": "InitConfiguration", "patches": {"directory": MOUNTS[PATCHES]}}
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane", "extraMounts": mounts}],
        "kubeadmConfigPatches": [json.dumps(patches)],
        "featureGates": {"GenericWorkload": True},
        "runtimeConfig": {f"scheduling.k8s.io/{version}": "true" for version in ("v1beta1", "v1alpha3")},
    }


class Kind:
    """One kind cluster; its own network plugin enforces policies and its provisioner makes volumes."""

    def up(self) -> None:
        """Create the cluster unless it is there."""
        programs = parts.build_all((parts.KIND, parts.HELM, parts.TINY, parts.KUBECTL))
        if CLUSTER in run(programs["kind"], "get", "clusters").split() and self.healthy(programs["kubectl"]):
            print("the cluster is up already")
            return
        self.down()
        link_programs(BIN, programs)
        for shared in MOUNTS:
            shared.mkdir(parents=True)
        (PATCHES / "kube-apiserver+json.json").write_text(json.dumps(api_server_patch()))
        (CONFIG / "audit.json").write_text(json.dumps(configs.audit_policy()))
        with step("kind"):
            run(
                *(programs["kind"], "create", "cluster", f"--name={CLUSTER}", f"--kubeconfig={KUBECONFIG}"),
                *("--config=-", "--wait=5m"),
                input=json.dumps(configuration()),
            )
            AUDIT_LOG.symlink_to(AUDIT / "audit.log")
        with step("probe"):
            self.load(programs["probe"], configs.PROBE_IMAGE)

    def healthy(self, kubectl: Path) -> bool:
        """Whether this checkout's kubeconfig reaches a ready API server."""
        question = ("get", "--raw=/readyz")
        return KUBECONFIG.exists() and run(kubectl, f"--kubeconfig={KUBECONFIG}", *question, check=False) == "ok"

    def down(self) -> None:
        """Delete the cluster, whichever checkout made it."""
        run(parts.build(parts.KIND) / "kind", "delete", "cluster", f"--name={CLUSTER}")
        shutil.rmtree(STATE, ignore_errors=True)

    def images(self, names: dict[str, str]) -> dict[str, str]:
        """Build with Docker and load into the node."""
        references = {}
        for name, tag in names.items():
            reference = f"localhost/rltrain-{name}:{tag}"
            with step(f"build {reference}"):
                images.build_with_docker(name, reference)
            with step(f"load {reference}"):
                self._load(reference)
            references[name] = reference
        return references

    def publish(self, reference: str, tag: str) -> None:
        """Tag with Docker and load into the node."""
        other = images.retagged(reference, tag)
        run("docker", "tag", reference, other)
        self._load(other)

    def _load(self, reference: str) -> None:
        run(BIN / "kind", "load", "docker-image", reference, f"--name={CLUSTER}")

    def load(self, program: Path, reference: str) -> None:
        """Write the image and load it into the node."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "image.tar"
            write_image(program, reference, archive)
            run(BIN / "kind", "load", "image-archive", archive, f"--name={CLUSTER}")

    def volumes(self) -> None:
        """Nothing to do: kind's provisioner makes them."""
