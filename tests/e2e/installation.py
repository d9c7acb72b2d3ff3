"""The operator under test, installed by Helm."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.kube import ROOT, Kube, Object

NAMESPACE: Final = "rltrain-system"
RELEASE: Final = "rltrain"
CHART: Final = ROOT / "charts/rltrain"


@dataclass(frozen=True)
class Images:
    """References that the cluster can pull."""

    trainer: str
    operator: str


def helm(*args: str) -> str:
    """Run helm; its stdout."""
    done = subprocess.run([str(ROOT / ".cluster/bin/helm"), *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"helm {' '.join(args)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def install(images: Images, *args: str, chart: Path = CHART) -> None:
    """Install the release under test, or upgrade it, as the README says."""
    helm(
        *("upgrade", "--install", RELEASE, str(chart), "--namespace", NAMESPACE, "--create-namespace"),
        *("--set", f"image.reference={images.operator},trainerImage.reference={images.trainer}", *args),
    )


def wait_installed(images: Images, *args: str) -> None:
    """The release under test with values such as `--set=…`, and no pod left of the one before."""
    install(images, "--wait", "--timeout=180s", *args)
    Operator(Kube(NAMESPACE)).settle()


@dataclass(frozen=True)
class Operator:
    """The operator as Helm installed it."""

    kube: Kube

    def scale(self, replicas: int) -> None:
        """Scale the Deployment and wait until its pods are as many."""
        self.kube.kubectl("scale", f"deployment/{RELEASE}", f"--replicas={replicas}")
        if replicas == 0:
            self.kube.wait("no operator pod", lambda: not self.pods(), 60)
        else:
            self.settle()

    def settle(self) -> None:
        """Wait until its pods are those that are wanted, and ready."""
        self.kube.kubectl("rollout", "status", f"deployment/{RELEASE}", "--timeout=120s")

    def pods(self) -> list[Object]:
        """Its pods that aren't on their way out."""
        found = self.kube.select("pods", **{"app.kubernetes.io/instance": RELEASE})
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def restarts(self) -> int:
        """Restarts of the operator's containers: 0 while it stays well."""
        return sum(
            status["restartCount"] for pod in self.pods() for status in pod["status"].get("containerStatuses", [])
        )

    def kill(self) -> None:
        """End its pod without any grace."""
        for pod in self.pods():
            self.kube.delete("pod", pod["metadata"]["name"], "--grace-period=0", "--force")

    def logs(self) -> str:
        return self.kube.kubectl("logs", f"deployment/{RELEASE}", "--tail=-1")
