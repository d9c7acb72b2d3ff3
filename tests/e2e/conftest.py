"""An installed operator, and a namespace of its own for each test."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm
from e2e.kube import ROOT, Kube


@pytest.fixture(scope="session")
def images() -> Images:
    return Images(**json.loads((ROOT / ".cluster/images.json").read_text()))


@pytest.fixture(scope="session")
def operator(images: Images) -> Iterator[Operator]:
    """The chart installed with the images under test, as the README says; uninstalled at the end."""
    helm(
        *("upgrade", "--install", RELEASE, str(ROOT / "charts/rltrain"), "--namespace", NAMESPACE),
        *("--create-namespace", "--wait", "--timeout", "180s"),
        *("--set", f"image.reference={images.operator},trainerImage.reference={images.trainer}"),
    )
    yield Operator(Kube(NAMESPACE))
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


@pytest.fixture
def kube(operator: Operator) -> Iterator[Kube]:
    """A fresh namespace that admits only `restricted` pods, deleted afterwards with all that is in it."""
    subprocess.run([sys.executable, "-m", "testbed", "volumes"], cwd=ROOT / "tests", check=True, capture_output=True)
    kube = Kube(f"e2e-{uuid.uuid4().hex[:8]}")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kube.namespace, "labels": labels}})
    yield kube
    # Jobs first: with their pods still there, the namespace's end comes in several rounds of ever longer waits.
    kube.kubectl("delete", "rltj", "--all", "--timeout=60s")
    kube.kubectl("delete", "namespace", kube.namespace, "--wait=true", "--timeout=120s")
