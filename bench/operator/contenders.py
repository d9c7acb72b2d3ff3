"""The operators that are measured: how each is started, what it is asked for, and how it says that all is well."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from bench.rows import ROOT
from rltrain.api import names
from rltrain.api.crd import crd
from testbed import parts
from testbed.layout import PARTS

NAMESPACE: Final = "bench"
CLAIM: Final = "checkpoints"
IMAGE: Final = "bench.invalid/any:1"
PORT: Final = 18480
RESOURCES: Final = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "500m", "memory": "1Gi"}}
_KUBERAY_MODULE: Final = "github.com/ray-project/kuberay/ray-operator"


class Contender(Protocol):
    """One operator.

    Attributes:
        name: in the tables; also the user that it is to the API server.
        resource: path of its objects below a namespace's own.
        drivers: whether jobs report progress through the API while they run.
    """

    @property
    def name(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def drivers(self) -> bool: ...

    def command(self) -> list[str]:
        """How it is started, outside the cluster and alone."""

    def definitions(self) -> str:
        """Its CRDs, as a file's text."""

    def job(self, name: str, workers: int) -> dict[str, Any]:
        """An object that makes one head and so many others."""

    def well(self, made: dict[str, Any]) -> bool:
        """Whether it says of an object that all pods are there and ready."""

    def head(self, job: str) -> str:
        """Label selector of a job's head."""


def path(contender: Contender, name: str = "") -> str:
    """Where its objects are, or one of them."""
    group, _, plural = contender.resource.rpartition("/")
    return f"/apis/{group}/namespaces/{NAMESPACE}/{plural}{name and '/'}{name}"


@dataclass(frozen=True)
class Ours:
    """rltrain's operator.

    Args:
        profile: file for what cProfile finds, if it is to.
        more: further words of the command line.
    """

    profile: Path | None = None
    more: tuple[str, ...] = ()
    name: str = "rltrain-operator"
    resource: str = f"{names.API_VERSION}/{names.PLURAL}"
    drivers: bool = True

    def command(self) -> list[str]:
        program = str(Path(sys.executable).with_name("rltrain-operator"))
        probes = ("--host", "127.0.0.1", "--port", str(PORT))
        watched = [] if self.profile is None else ["-m", "cProfile", "-o", str(self.profile)]
        return [sys.executable, *watched, program, "--trainer-image", IMAGE, *probes, *self.more]

    def definitions(self) -> str:
        return (ROOT / "crds/rltrain.dev_rltrainingjobs.yaml").read_text()

    def job(self, name: str, workers: int) -> dict[str, Any]:
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "plan": "DQN",
                "env": {"id": "CartPole-v1"},
                "stop": {"envSteps": 1_000_000},
                "checkpoint": {"storage": {"claim": CLAIM}},
                "head": {"resources": RESOURCES},
                "rollouts": {"replicas": workers, "resources": RESOURCES},
            },
        }

    def well(self, made: dict[str, Any]) -> bool:
        conditions = made.get("status", {}).get("conditions", [])
        return any(each["type"] == "ClusterReady" and each["status"] == "True" for each in conditions)

    def head(self, job: str) -> str:
        return f"{names.LABEL_JOB}={job},{names.LABEL_ROLE}={names.HEAD}"


@dataclass(frozen=True)
class KubeRay:
    """KubeRay's operator, with a RayCluster where we have a job.

    Args:
        concurrency: clusters that it looks at at the same time; 1 is its default.
    """

    concurrency: int = 1
    name: str = "kuberay-operator"
    resource: str = "ray.io/v1/rayclusters"
    drivers: bool = False

    def command(self) -> list[str]:
        program = str(parts.build(parts.KUBERAY) / "kuberay-operator")
        probes = ("--health-probe-bind-address", f"127.0.0.1:{PORT}", "--metrics-addr", f"127.0.0.1:{PORT + 1}")
        alone = "--enable-leader-election=false"
        return [program, alone, *probes, "--reconcile-concurrency", str(self.concurrency)]

    def definitions(self) -> str:
        folder = kuberay_module() / "config/crd/bases"
        return "\n---\n".join(file.read_text() for file in sorted(folder.glob("*.yaml")))

    def job(self, name: str, workers: int) -> dict[str, Any]:
        group = {"groupName": "rollouts", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
        return {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {"rayStartParams": {}, "template": _template("ray-head", storage=True)},
                "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": _template("ray-worker")}],
            },
        }

    def well(self, made: dict[str, Any]) -> bool:
        status = made.get("status", {})
        conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
        ready = status.get("readyWorkerReplicas", 0) >= made["spec"]["workerGroupSpecs"][0]["replicas"]
        head = conditions.get("HeadPodReady", "True") == "True"
        return bool(status.get("state") == "ready" and head and ready)

    def head(self, job: str) -> str:
        return f"ray.io/cluster={job},ray.io/node-type=head"


def _template(container: str, *, storage: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"name": container, "image": IMAGE, "resources": RESOURCES}
    if not storage:
        return {"spec": {"containers": [made]}}
    made["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    volume = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": CLAIM}}
    return {"spec": {"containers": [made], "volumes": [volume]}}


def kuberay_module() -> Path:
    """Folder of KubeRay's sources."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", _KUBERAY_MODULE]
    done = subprocess.run(command, cwd=PARTS / "kuberay", capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def definition_sizes() -> dict[str, int]:
    """Bytes of the CRDs as JSON without spaces: ours, and KubeRay's by kind."""

    def size(definition: object) -> int:
        return len(json.dumps(definition, separators=(",", ":"), ensure_ascii=False).encode())

    sizes = {names.KIND: size(crd())}
    for file in sorted((kuberay_module() / "config/crd/bases").glob("*.yaml")):
        made = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
        sizes[made["spec"]["names"]["kind"]] = size(made)
    return sizes
