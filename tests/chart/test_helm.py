"""The chart as Helm renders it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

pytestmark = pytest.mark.cluster  # Helm is one of the test cluster's parts

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/rltrain"
HELM = ROOT / ".cluster/bin/helm"
Object = dict[str, Any]


def helm(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(HELM), *args], capture_output=True, text=True, timeout=60)


def render(*args: str, release: str = "rltrain", chart: Path = CHART) -> list[Object]:
    done = helm("template", release, str(chart), "--namespace", "system", "--kube-version", "1.36.0", *args)
    assert done.returncode == 0, done.stderr
    return [made for made in YAML(typ="safe", pure=True).load_all(done.stdout) if made]


def one(objects: list[Object], kind: str) -> Object:
    (found,) = (made for made in objects if made["kind"] == kind)
    return found


def values(**changes: Any) -> tuple[str, ...]:
    return tuple(word for key, value in changes.items() for word in ("--set-json", f"{key}={json.dumps(value)}"))


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("namespaces", [[], ["team-a", "team-b"]])
def test_every_object_is_one_that_kubernetes_knows(namespaces: list[str]) -> None:
    for made in render(*values(watchNamespaces=namespaces)):
        if made["kind"] != "CustomResourceDefinition":
            kubernetes_validate.validate(made, "1.36", strict=True)


def test_operator_passes_the_restricted_standard_and_runs_alone() -> None:
    spec = one(render(), "Deployment")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]

    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "Recreate"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
    assert container["resources"]["limits"]["memory"]


def test_misspelt_value_is_refused_by_its_name() -> None:
    done = helm("template", "x", str(CHART), "--set", "leaderElectoin.enabled=true")

    assert done.returncode != 0
    assert "leaderElectoin" in done.stderr


def test_names_follow_the_release_or_what_the_user_says() -> None:
    assert one(render(release="prod"), "Deployment")["metadata"]["name"] == "prod-rltrain"
    assert one(render(release="rltrain"), "Deployment")["metadata"]["name"] == "rltrain"
    for made in render(*values(fullnameOverride="mine")):
        if made["kind"] != "CustomResourceDefinition":
            assert made["metadata"]["name"] == "mine"


def test_chart_works_below_another_chart_with_global_values(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
    (parent / "charts/rltrain").symlink_to(CHART)

    objects = render("--set", "global.x=1,rltrain.workers=3", chart=parent)

    env = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "RLTRAIN_WORKERS", "value": "3"} in env


def test_rights_are_those_of_the_watched_namespaces_alone() -> None:
    cluster = render()
    assert one(cluster, "ClusterRole")["rules"]
    assert not [made for made in cluster if made["kind"] == "Role"]

    some = render(*values(watchNamespaces=["team-a", "team-b"]))
    assert not [made for made in some if made["kind"].startswith("ClusterRole")]
    assert [made["metadata"]["namespace"] for made in some if made["kind"] == "Role"] == ["team-a", "team-b"]
    for binding in (made for made in some if made["kind"] == "RoleBinding"):
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "rltrain", "namespace": "system"}]


def test_definition_is_kept_on_uninstall_unless_told_otherwise() -> None:
    keep = {"helm.sh/resource-policy": "keep"}

    assert one(render(), "CustomResourceDefinition")["metadata"]["annotations"] == keep
    gone = one(render(*values(crds={"keep": False})), "CustomResourceDefinition")
    assert "annotations" not in gone["metadata"]
    assert not [made for made in render(*values(crds={"install": False})) if made["kind"].startswith("Custom")]


def test_definition_survives_helm_as_it_is() -> None:
    rendered = one(render(), "CustomResourceDefinition")

    models = YAML(typ="safe", pure=True).load((CHART / "files/crd.yaml").read_text())
    assert rendered["spec"] == models["spec"]


def test_account_of_the_users_own_is_used_and_none_is_made() -> None:
    objects = render(*values(serviceAccount={"create": False, "name": "mine"}))

    assert not [made for made in objects if made["kind"] == "ServiceAccount"]
    assert one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert one(objects, "ClusterRoleBinding")["subjects"][0]["name"] == "mine"


def test_images_are_the_charts_version_unless_given() -> None:
    def images(objects: list[Object]) -> tuple[str, str]:
        container = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        return container["image"], env["RLTRAIN_TRAINER_IMAGE"]

    version = YAML(typ="safe").load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images(render()) == (f"rltrain-operator:{version}", f"rltrain-trainer:{version}")
    given = values(image={"reference": "a@sha256:1"}, trainerImage={"reference": "b:2"})
    assert images(render(*given)) == ("a@sha256:1", "b:2")
