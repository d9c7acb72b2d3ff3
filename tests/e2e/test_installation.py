"""The chart in a real cluster: rights in some namespaces alone, and a definition that is older than the operator."""

import json

import pytest

from e2e.installation import NAMESPACE, RELEASE, Images, Operator, install, wait_installed
from e2e.kube import Kube, condition
from e2e.standin import standin

pytestmark = pytest.mark.cluster

CRD = "rltrainingjobs.rltrain.dev"


def test_operator_of_some_namespaces_needs_no_rights_in_others(
    kube: Kube, reinstalled: Operator, images: Images
) -> None:
    elsewhere = Kube("default")
    wait_installed(images, f"--set-json=watchNamespaces={json.dumps([kube.namespace])}")
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
        wait_installed(images)


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


def _condition(pod: dict[str, dict[str, list[dict[str, str]]]], kind: str) -> dict[str, str]:
    return next((each for each in pod["status"].get("conditions", []) if each["type"] == kind), {"status": "Unknown"})
