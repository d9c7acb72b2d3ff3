"""The chart in a real cluster: rights, upgrades, and what an uninstall leaves."""

import json
from collections.abc import Iterator

import pytest

from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm
from e2e.kube import ROOT, Kube, condition
from e2e.standin import standin

pytestmark = pytest.mark.cluster

CRD = "rltrainingjobs.rltrain.dev"


def install(images: Images, *args: str) -> None:
    """Install or upgrade the release under test."""
    helm(
        *("upgrade", "--install", RELEASE, str(ROOT / "charts/rltrain"), "--namespace", NAMESPACE),
        *("--set", f"image.reference={images.operator},trainerImage.reference={images.trainer}", *args),
    )


@pytest.fixture
def reinstalled(operator: Operator, images: Images) -> Iterator[Operator]:
    """The operator, which a test may reinstall as it likes; as it was afterwards."""
    yield operator
    install(images, "--wait", "--timeout=180s")


def test_operator_of_some_namespaces_needs_no_rights_in_others(
    kube: Kube, reinstalled: Operator, images: Images
) -> None:
    elsewhere = Kube("default")
    install(images, f"--set-json=watchNamespaces={json.dumps([kube.namespace])}", "--wait", "--timeout=180s")
    may = reinstalled.kube.run(
        *("auth", "can-i", "list", "rltj", "-n", "default", f"--as=system:serviceaccount:{NAMESPACE}:{RELEASE}")
    )
    assert may.stdout.strip() == "no"

    elsewhere.apply(standin("unwatched", images.operator))
    try:
        kube.apply(standin("watched", images.operator, life=1))
        assert condition(kube.wait_finished("watched", 90), "Succeeded") == "True"
        assert "status" not in elsewhere.job("unwatched")
    finally:
        elsewhere.delete("rltj", "unwatched")


def test_older_definition_keeps_the_operator_from_being_ready_until_the_chart_upgrades_it(
    reinstalled: Operator, images: Images
) -> None:
    kube = reinstalled.kube
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/checkpoint"
    kube.kubectl("patch", "crd", CRD, "--type=json", "-p", json.dumps([{"op": "remove", "path": path}]))
    reinstalled.kill()

    def told() -> bool:
        return "lacks status.checkpoint" in kube.run("logs", f"deployment/{RELEASE}").stdout

    kube.wait("the operator says what is missing", told, 90)
    (pod,) = reinstalled.pods()
    assert {"type": "Ready", "status": "False"}.items() <= _condition(pod, "Ready").items()

    install(images)
    kube.wait("ready", lambda: _condition(reinstalled.pods()[0], "Ready")["status"] == "True", 90)


def test_uninstall_leaves_the_definition_and_the_jobs_which_go_on(
    kube: Kube, reinstalled: Operator, images: Images
) -> None:
    kube.apply(standin("outlives", images.operator))
    kube.wait("ClusterReady", lambda: condition(kube.job("outlives"), "ClusterReady") == "True", 60)

    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")

    assert kube.get("crd", CRD) is not None
    assert kube.job("outlives")["status"]["state"] == "Starting"
    assert {pod["status"]["phase"] for pod in kube.pods("outlives")} == {"Running"}
    assert not kube.kubectl(
        "get", "clusterroles,clusterrolebindings", "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name"
    ).strip()


def _condition(pod: dict[str, dict[str, list[dict[str, str]]]], kind: str) -> dict[str, str]:
    return next((each for each in pod["status"].get("conditions", []) if each["type"] == kind), {"status": "Unknown"})
