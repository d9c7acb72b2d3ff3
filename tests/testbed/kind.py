"""kind, the Kubernetes in Docker, for machines with a Docker engine."""

import json
import shutil
import tempfile
from pathlib import Path

from . import configs, images, parts
from .cluster import link_programs
from .layout import AUDIT_LOG, BIN, CLUSTER, KUBECONFIG, STATE
from .oci import write_image
from .shell import run, step

AUDIT = STATE / "audit"  # a folder, so that the log can be renamed in it


def configuration() -> dict[str, object]:
    """kind's configuration: the API server writes its audit log where the tests look for it."""
    # kubeadm's older and newer ways to write flags differ, and which one kind takes depends on the version of
    # Kubernetes: a patch of the written static pod does not.
    command = "/spec/containers/0"
    patch = [
        {"op": "add", "path": f"{command}/command/-", "value": "--audit-policy-file=/etc/testbed/audit.json"},
        {"op": "add", "path": f"{command}/command/-", "value": "--audit-log-path=/var/log/testbed/audit.log"},
        {"op": "add", "path": f"{command}/command/-", "value": "--audit-log-maxsize=1000"},
        *(
            {"op": "add", "path": f"{command}/volumeMounts/-", "value": {"name": name, "mountPath": path}}
            for name, path in (("testbed-config", "/etc/testbed"), ("testbed-audit", "/var/log/testbed"))
        ),
        *(
            {
                "op": "add",
                "path": "/spec/volumes/-",
                "value": {"name": name, "hostPath": {"path": path, "type": "Directory"}},
            }
            for name, path in (("testbed-config", "/etc/testbed"), ("testbed-audit", "/var/log/testbed"))
        ),
    ]
    patches = STATE / "kind-patches"
    patches.mkdir(parents=True, exist_ok=True)
    (patches / "kube-apiserver+json.json").write_text(json.dumps(patch))
    config = STATE / "kind-config"
    config.mkdir(exist_ok=True)
    (config / "audit.json").write_text(json.dumps(configs.audit_policy()))
    AUDIT.mkdir(exist_ok=True)
    mounts = {patches: "/etc/kind-patches", config: "/etc/testbed", AUDIT: "/var/log/testbed"}
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [
            {
                "role": "control-plane",
                "extraMounts": [{"hostPath": str(host), "containerPath": inside} for host, inside in mounts.items()],
            }
        ],
        "kubeadmConfigPatches": [
            json.dumps({"kind": "InitConfiguration", "patches": {"directory": "/etc/kind-patches"}})
        ],
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
        with step("kind"):
            run(
                *(programs["kind"], "create", "cluster", f"--name={CLUSTER}", f"--kubeconfig={KUBECONFIG}"),
                *("--config=-", "--wait=5m"),
                input=json.dumps(configuration()),
            )
            AUDIT_LOG.symlink_to(AUDIT / "audit.log")
        with step("probe"), tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "image.tar"
            write_image(programs["probe"], configs.PROBE_IMAGE, archive)
            run(programs["kind"], "load", "image-archive", archive, f"--name={CLUSTER}")

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
                run(BIN / "kind", "load", "docker-image", reference, f"--name={CLUSTER}")
            references[name] = reference
        return references

    def volumes(self) -> None:
        """Nothing to do: kind's provisioner makes them."""
