"""The chart as Helm renders it."""

import json
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

from chart.rendering import CHART, CRD, SNAPSHOTS, Object, helm, render, sets, snapshot, values, values_of

pytestmark = pytest.mark.cluster  # Helm is one of the test cluster's parts
EACH_SET = pytest.mark.parametrize("name", sets())


def one(objects: list[Object], kind: str) -> Object:
    (found,) = (made for made in objects if made["kind"] == kind)
    return found


@EACH_SET
def test_lint_finds_nothing(name: str) -> None:
    done = helm("lint", "--strict", CHART, *values_of(name))

    assert done.returncode == 0, done.stdout + done.stderr


@EACH_SET
def test_every_object_is_one_that_kubernetes_knows(name: str) -> None:
    for made in render(*values_of(name)):
        if made["kind"] not in (CRD, "ServiceMonitor"):
            kubernetes_validate.validate(made, "1.36", strict=True)


@EACH_SET
def test_what_a_values_set_makes_changes_only_on_purpose(name: str) -> None:
    """After a change on purpose: `make chart`, and read the difference."""
    assert (SNAPSHOTS / f"{name}.yaml").read_text() == snapshot(name)


def test_every_snapshot_is_of_a_values_set() -> None:
    assert sorted(path.stem for path in SNAPSHOTS.iterdir()) == sets()


def operator_of(objects: list[Object]) -> Object:
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    found: Object = container
    return found


def images(objects: list[Object]) -> tuple[str, str]:
    """The operator's, and the one that it gives to jobs."""
    env = {entry["name"]: entry.get("value") for entry in operator_of(objects)["env"]}
    return operator_of(objects)["image"], env["RLTRAIN_TRAINER_IMAGE"]


def test_operator_passes_the_restricted_standard() -> None:
    spec = one(render(), "Deployment")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]

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
    done = helm("template", "x", CHART, "--set", "leaderElectoin.enabled=true")

    assert done.returncode != 0
    assert "leaderElectoin" in done.stderr


def test_names_follow_the_release_or_what_the_user_says() -> None:
    assert one(render(release="prod"), "Deployment")["metadata"]["name"] == "prod-rltrain"
    assert one(render(release="rltrain"), "Deployment")["metadata"]["name"] == "rltrain"
    for made in render(*values(fullnameOverride="mine")):
        if made["kind"] != CRD:
            assert made["metadata"]["name"] in ("mine", "mine-leader")


def test_chart_works_below_another_chart_whose_global_values_it_takes(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
    (parent / "charts/rltrain").symlink_to(CHART)

    plain = render("--set", "global.x=1,rltrain.workers=3", chart=parent)
    mirrored = render("--set", "global.x=1,global.imageRegistry=mirror.example", chart=parent)

    assert {"name": "RLTRAIN_WORKERS", "value": "3"} in operator_of(plain)["env"]
    assert images(plain)[0].startswith("rltrain-operator:")
    assert images(mirrored)[0].startswith("mirror.example/rltrain-operator:")


def test_rights_are_those_of_the_watched_namespaces_alone() -> None:
    cluster = render()
    assert one(cluster, "ClusterRole")["rules"]
    assert [made["metadata"]["name"] for made in cluster if made["kind"] == "Role"] == ["rltrain-leader"]

    some = render(*values(watchNamespaces=["team-a", "team-b"]))
    assert not [made for made in some if made["kind"].startswith("ClusterRole")]
    roles = [made["metadata"]["namespace"] for made in some if made["kind"] == "Role"]
    assert sorted(roles) == ["system", "team-a", "team-b"]
    asked = {"watchNamespaces": ["team-a"], "rbac": {"readClusterObjects": True}}
    assert {verb for rule in one(render(*values(**asked)), "ClusterRole")["rules"] for verb in rule["verbs"]} == {"get"}
    for binding in (made for made in some if made["kind"] == "RoleBinding"):
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "rltrain", "namespace": "system"}]


def test_definition_is_kept_on_uninstall_unless_told_otherwise() -> None:
    keep = {"helm.sh/resource-policy": "keep"}

    assert one(render(), CRD)["metadata"]["annotations"] == keep
    gone = one(render(*values(crds={"keep": False})), CRD)
    assert "annotations" not in gone["metadata"]
    assert not [made for made in render(*values(crds={"install": False})) if made["kind"] == CRD]


def test_definition_survives_helm_as_it_is() -> None:
    rendered = one(render(), CRD)

    models = YAML(typ="safe", pure=True).load((CHART / "files/crd.yaml").read_text())
    assert rendered["spec"] == models["spec"]


def test_account_of_the_users_own_is_used_and_none_is_made() -> None:
    objects = render(*values(serviceAccount={"create": False, "name": "mine"}))

    assert not [made for made in objects if made["kind"] == "ServiceAccount"]
    assert one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert one(objects, "ClusterRoleBinding")["subjects"][0]["name"] == "mine"


def test_images_are_the_charts_version_unless_given() -> None:
    version = YAML(typ="safe").load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images(render()) == (f"rltrain-operator:{version}", f"rltrain-trainer:{version}")
    given = values(image={"reference": "a@sha256:1"}, trainerImage={"reference": "b:2"})
    assert images(render(*given)) == ("a@sha256:1", "b:2")


@pytest.mark.parametrize(
    ("reference", "mirrored"),
    [
        ("rltrain:1", "m.example:5000/rl/rltrain:1"),
        ("library/rltrain:1", "m.example:5000/rl/library/rltrain:1"),
        ("r.example/rltrain@sha256:1", "m.example:5000/rl/rltrain@sha256:1"),
        ("localhost/a/rltrain:1", "m.example:5000/rl/a/rltrain:1"),
        ("10.0.0.1:5000/rltrain:1", "m.example:5000/rl/rltrain:1"),
    ],
)
def test_registry_for_all_stands_for_the_one_that_an_image_names(reference: str, mirrored: str) -> None:
    image = {"reference": reference}
    everywhere = {"imageRegistry": "m.example:5000/rl/"}

    assert images(render(*values(image=image, trainerImage=image, **{"global": everywhere}))) == (mirrored, mirrored)


def test_labels_of_the_users_reach_every_object_and_replace_none_of_the_charts() -> None:
    own = {"app.kubernetes.io/name": "other", "team": "a"}
    objects = render(*values(commonLabels=own, commonAnnotations={"b": "c"}, podLabels=own))

    for made in objects:
        assert made["metadata"]["labels"]["team"] == "a"
        assert made["metadata"]["annotations"]["b"] == "c"
    deployment = one(objects, "Deployment")["spec"]
    assert deployment["selector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()


def test_drain_takes_one_of_several_operators_at_a_time() -> None:
    def budgets(**changes: object) -> list[Object]:
        return [made for made in render(*values(**changes)) if made["kind"] == "PodDisruptionBudget"]

    (budget,) = budgets(replicas=2)
    selected = one(render(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["selector"]["matchLabels"].items() <= selected.items()
    assert not budgets(), "one that guards a single pod would hold up every drain"
    assert not budgets(replicas=2, podDisruptionBudget={"enabled": False})


def test_policy_of_the_operators_pod_lets_nobody_in_unless_told() -> None:
    assert not [made for made in render() if made["kind"] == "NetworkPolicy"]

    closed = one(render(*values(networkPolicy={"enabled": True})), "NetworkPolicy")["spec"]
    selected = one(render(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert closed["podSelector"]["matchLabels"].items() <= selected.items()
    assert closed["ingress"] == []
    assert closed["policyTypes"] == ["Ingress"]


def test_jobs_are_let_out_only_where_they_are_told_and_rules_that_would_not_hold_are_refused() -> None:
    def egress(*args: str | Path) -> list[str]:
        env = one(render(*args), "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
        return [each["value"] for each in env if each["name"] == "RLTRAIN_JOB_EGRESS"]

    assert egress() == []
    assert egress(*values(jobNetworkPolicy={"restrictEgress": True})) == ["[]"]
    rules = [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]}]
    (text,) = egress(*values(jobNetworkPolicy={"restrictEgress": True, "egress": rules}))
    assert json.loads(text) == rules
    refused = helm("template", "x", CHART, "--kube-version=1.36.0", *values(jobNetworkPolicy={"egress": rules}))
    assert refused.returncode != 0
    assert "jobNetworkPolicy.egress needs jobNetworkPolicy.restrictEgress" in refused.stderr


def test_several_pods_need_an_election_and_are_replaced_one_after_another() -> None:
    deployment = one(render(*values(replicas=2)), "Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}

    without = values(leaderElection={"enabled": False})
    refused = helm("template", "x", CHART, "--kube-version=1.36.0", *values(replicas=2), *without)
    assert refused.returncode != 0
    assert "leaderElection.enabled" in refused.stderr
    alone = render(*without)
    assert one(alone, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert not [made for made in alone if made["metadata"]["name"].endswith("-leader")]


def test_leader_may_touch_its_own_lease_alone() -> None:
    objects = render(*values(fullnameOverride="mine"))

    (role,) = (made for made in objects if made["kind"] == "Role")
    own, new = role["rules"]
    assert (own["resourceNames"], own["verbs"]) == (["mine"], ["get", "update"])
    assert new["verbs"] == ["create"]
    assert {"name": "RLTRAIN_LEASE_NAME", "value": "mine"} in operator_of(objects)["env"]


def test_metrics_are_found_only_where_they_are_wanted() -> None:
    kinds = {made["kind"] for made in render()}
    assert not kinds & {"Service", "ServiceMonitor", "ConfigMap"}

    found = render(*values(metrics={"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}))
    service, monitor = one(found, "Service"), one(found, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    pod = one(found, "Deployment")["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] in [port["name"] for port in operator_of(found)["ports"]]


def test_dashboard_comes_as_it_is() -> None:
    found = one(render(*values(metrics={"dashboard": {"enabled": True}})), "ConfigMap")

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(found["data"]["rltrain.json"]) == json.loads((CHART / "files/dashboard.json").read_text())
