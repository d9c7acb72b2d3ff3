"""The chart is upgraded, rolled back and uninstalled while a job trains: its pods stay, and its steps rise."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from e2e.installation import CHART, NAMESPACE, RELEASE, Images, Operator, helm, install
from e2e.kube import Kube, condition, progress, reason
from e2e.manifests import example
from e2e.standin import standin
from e2e.user_code import CONFIG_MAP, ENV, config_map
from testbed.cluster import choose
from testbed.images import retagged

pytestmark = pytest.mark.cluster

NAME = "through"
CRD = "rltrainingjobs.rltrain.dev"
NEXT = "9.9.9"
FIELD = "note"
"""One that the next version's definition has, and this one's lacks."""


@pytest.fixture(scope="module")
def uids(shared: Kube, reinstalled: Operator) -> set[str]:
    """Of the pods of a job that trains; its manifest leaves the image to the operator."""
    manifest = example("cartpole-dqn", NAME, env={"id": ENV}, code={"configMap": {"name": CONFIG_MAP}})
    manifest["spec"] |= {"rollouts": {"replicas": 1}, "stop": {"timeSeconds": 3000}}
    manifest["spec"]["config"] |= {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    shared.apply(config_map(), manifest)
    shared.wait_steps(NAME, 1, 180)
    return pods(shared)


@pytest.fixture(scope="module")
def next_images(images: Images) -> Images:
    """The operator's under another tag. The trainer's isn't there: a pod made with it would never start."""
    choose().publish(images.operator, NEXT)
    return Images(operator=retagged(images.operator, NEXT), trainer=retagged(images.trainer, NEXT))


@pytest.fixture(scope="module")
def next_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This chart as the next release may have it, so that this one is the version before."""
    chart = tmp_path_factory.mktemp("next") / "rltrain"
    shutil.copytree(CHART, chart)
    yaml = YAML(typ="safe", pure=True)
    about, definition = (yaml.load((chart / name).read_text()) for name in ("Chart.yaml", "files/crd.yaml"))
    about |= {"version": NEXT, "appVersion": NEXT}
    fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields[FIELD] = {"type": "string", "maxLength": 5}
    (chart / "Chart.yaml").write_text(json.dumps(about))
    (chart / "files/crd.yaml").write_text(json.dumps(definition))
    return chart


def pods(kube: Kube) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kube.pods(NAME)}


def assert_undisturbed(kube: Kube, uids: set[str]) -> None:
    steps = progress(kube.job(NAME))["envSteps"]
    kube.wait_steps(NAME, steps + 1, 60)
    assert pods(kube) == uids
    assert {pod["status"]["phase"] for pod in kube.pods(NAME)} == {"Running"}
    assert progress(kube.job(NAME))["attempt"] == 1


def wait_operator(operator: Operator, images: Images) -> None:
    """Until no pod of another version is left."""

    def replaced() -> bool:
        return {pod["spec"]["containers"][0]["image"] for pod in operator.pods()} == {images.operator}

    operator.kube.wait("only this version's operator is left", replaced, 60)


def with_field(kube: Kube, value: str) -> subprocess.CompletedProcess[str]:
    """What the API server makes of a job with the new field."""
    manifest = example("cartpole-dqn", "noted", **{FIELD: value})
    return kube.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(manifest))


def test_upgrade_replaces_operator_and_definition_and_leaves_what_trains_alone(
    shared: Kube, reinstalled: Operator, uids: set[str], next_chart: Path, next_images: Images
) -> None:
    assert f'unknown field "spec.{FIELD}"' in with_field(shared, "new").stderr

    install(next_images, "--wait", "--timeout=180s", chart=next_chart)

    assert json.loads(with_field(shared, "new").stdout)["spec"][FIELD] == "new"
    assert "at most 5" in with_field(shared, "too long").stderr or "5 bytes" in with_field(shared, "too long").stderr
    wait_operator(reinstalled, next_images)
    shared.apply(standin("by-the-next", next_images.operator, life=1))
    assert condition(shared.wait_finished("by-the-next", 90), "Succeeded") == "True"
    assert_undisturbed(shared, uids)
    assert reason(shared.job(NAME), "Accepted") == "Accepted", "another default image is no edit"


def test_rollback_brings_operator_and_definition_back_and_leaves_what_trains_alone(
    shared: Kube, reinstalled: Operator, uids: set[str], images: Images
) -> None:
    helm("rollback", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout=180s")

    assert f'unknown field "spec.{FIELD}"' in with_field(shared, "new").stderr
    wait_operator(reinstalled, images)
    assert_undisturbed(shared, uids)


def test_uninstall_leaves_the_definition_and_the_jobs_which_go_on(
    shared: Kube, reinstalled: Operator, uids: set[str], images: Images
) -> None:
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")

    assert shared.get("crd", CRD) is not None
    assert not shared.kubectl(
        "get", "clusterroles,clusterrolebindings", "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name"
    ).strip()
    assert_undisturbed(shared, uids)

    install(images, "--wait", "--timeout=180s")
    shared.kubectl("patch", "rltj", NAME, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    shared.wait("the next operator takes the job up", lambda: reason(shared.job(NAME), "Training") == "Suspending", 60)
