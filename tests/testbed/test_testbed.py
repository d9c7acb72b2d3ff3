"""The cluster keeps what tests of the project rely on, and its pure parts do what they say."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from testbed import configs, images, kind, manifests, node, oci, packages, parts
from testbed.layout import AUDIT_LOG, BIN, IMAGES_JSON, KUBECONFIG, PARTS
from testbed.shell import TestbedError, run, wait_until

RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "readOnlyRootFilesystem": True,
}


def kubectl(*words: str, input: object = None, check: bool = True) -> str:
    """Run kubectl with an object on its standard input; its output."""
    text = None if input is None else json.dumps(input)
    return run(BIN / "kubectl", f"--kubeconfig={KUBECONFIG}", *words, input=text, check=check)


def pod(name: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    """A pod of the probe that the restricted standard admits."""
    container = {
        "name": "probe",
        "image": configs.PROBE_IMAGE,
        "imagePullPolicy": "Never",
        "args": list(arguments),
        "securityContext": RESTRICTED,
        **spec.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


class Space:
    """A namespace of a test's own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *words: str, input: object = None, check: bool = True) -> str:
        return kubectl(f"--namespace={self.name}", *words, input=input, check=check)

    def apply(self, value: object) -> None:
        self.kubectl("apply", "--filename=-", input=value)

    def succeeds(self, name: str, *arguments: str, **spec: Any) -> bool:
        """Whether a pod with these arguments ends well."""
        self.apply(pod(name, *arguments, **spec))
        query = ("get", "pod", name, "--output=jsonpath={.status.phase}")
        wait_until(
            f"the end of {name}",
            lambda: self.kubectl(*query) in ("Succeeded", "Failed"),
            90,
            lambda: self.kubectl("describe", "pod", name),
        )
        return self.kubectl(*query) == "Succeeded"

    def listen(self, name: str) -> str:
        """Start a pod that listens on port 8000; its address."""
        self.apply(pod(name, "listen", "8000"))
        self.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=90s")
        return self.kubectl("get", "pod", name, "--output=jsonpath={.status.podIP}")


@pytest.fixture
def space() -> Iterator[Space]:
    """A namespace under the restricted standard."""
    name = f"testbed-{uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    account = ("get", "serviceaccount", "default", f"--namespace={name}", "--ignore-not-found", "--output=name")
    wait_until("the namespace's account", lambda: bool(kubectl(*account)), 60, str)
    yield Space(name)
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.cluster
def test_a_privileged_pod_is_refused_and_a_restricted_one_runs(space: Space) -> None:
    privileged = pod("privileged", "listen", "8000", container={"securityContext": {"privileged": True}})
    with pytest.raises(TestbedError, match="violates PodSecurity"):
        space.apply(privileged)
    assert space.succeeds("restricted", "resolve", "localhost.localdomain.invalid") is False
    assert space.succeeds("names", "resolve", "kubernetes.default.svc.cluster.local")


@pytest.mark.cluster
def test_a_headless_service_resolves_to_its_pods(space: Space) -> None:
    service = {"clusterIP": "None", "selector": {"app": "server"}, "publishNotReadyAddresses": True}
    space.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peers"}, "spec": service})
    server = pod("server", "listen", "8000", hostname="first", subdomain="peers")
    space.apply(server)
    space.kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=90s")
    address = space.kubectl("get", "pod", "server", "--output=jsonpath={.status.podIP}")
    assert space.succeeds("service", "resolve", "peers")
    assert space.kubectl("logs", "service").split() == [address]
    assert space.succeeds("member", "connect", "first.peers:8000")


@pytest.mark.cluster
def test_a_policy_refuses_strangers_admits_those_it_names_and_ends_with_its_removal(space: Space) -> None:
    addresses = {name: space.listen(name) for name in ("server", "friend", "stranger")}

    def admitted(name: str) -> bool:
        try:
            space.kubectl("exec", name, "--", "/probe", "connect", f"{addresses['server']}:8000")
        except TestbedError as error:
            if "dial tcp" not in str(error):
                raise
            return False
        return True

    assert admitted("stranger")
    friend = {"podSelector": {"matchLabels": {"app": "friend"}}}
    spec = {
        "podSelector": {"matchLabels": {"app": "server"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [friend]}],
    }
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "friends"}}
    space.apply({**policy, "spec": spec})
    # The packet filter follows the API with a delay of its own.
    wait_until("the refusal of a stranger", lambda: not admitted("stranger"), 60, str)
    wait_until("the admission of a friend", lambda: admitted("friend"), 60, str)
    assert not admitted("stranger")
    space.kubectl("delete", "networkpolicy", "friends")
    wait_until("the admission of a stranger", lambda: admitted("stranger"), 60, str)


@pytest.mark.cluster
def test_a_plain_claim_binds_and_a_pod_without_privileges_writes_to_it(space: Space) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    space.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    assert space.succeeds("writer", "write", "/data/file", container=mount, volumes=[volume])


@pytest.mark.cluster
def test_a_volume_whose_claim_is_gone_becomes_available_and_empty(space: Space) -> None:
    test_a_plain_claim_binds_and_a_pod_without_privileges_writes_to_it(space)
    volume = space.kubectl("get", "pvc", "data", "--output=jsonpath={.spec.volumeName}")
    space.kubectl("delete", "pod", "writer", "--wait=true")
    space.kubectl("delete", "pvc", "data", "--wait=true")
    run(*(sys.executable, "-m", "testbed", "volumes"), env={"PYTHONPATH": str(Path(__file__).parents[1])})
    phase = kubectl("get", "pv", volume, "--ignore-not-found", "--output=jsonpath={.status.phase}")
    assert phase in ("Available", "")  # kind makes volumes on demand and removes them with their claims


@pytest.mark.cluster
def test_a_job_runs_an_image_from_the_registry(space: Space) -> None:
    image = json.loads(IMAGES_JSON.read_text())["operator"]
    container = {
        "name": "python",
        "image": image,
        "command": ["python", "-c", "import rltrain_operator, os; assert os.getuid() == 1000"],
        "securityContext": RESTRICTED,
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"template": template, "backoffLimit": 0}
    space.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec})
    space.kubectl("wait", "job/job", "--for=condition=Complete", "--timeout=120s")


@pytest.mark.cluster
def test_the_audit_log_names_who_did_what(space: Space) -> None:
    space.kubectl("get", "configmaps", "--as=someone-testing", "--as-group=system:masters")

    def asked() -> bool:
        entries = (json.loads(line) for line in AUDIT_LOG.read_text().splitlines() if "someone-testing" in line)
        return any(
            entry["impersonatedUser"]["username"] == "someone-testing"
            and (entry["verb"], entry["objectRef"]["resource"]) == ("list", "configmaps")
            and entry["objectRef"]["namespace"] == space.name
            for entry in entries
        )

    wait_until("the audit log's entry", asked, 10, str)


@pytest.mark.cluster
def test_logs_and_exec_reach_a_pod(space: Space) -> None:
    space.listen("server")
    assert space.kubectl("exec", "server", "--", "/probe", "resolve", "kubernetes.default").strip()


def test_a_part_is_built_anew_when_its_definition_or_go_changes(tmp_path: Path) -> None:
    part = parts.Part("thing", {"thing": "."})
    (tmp_path / "go.mod").write_text("module thing\n")
    before = parts.fingerprint(part, "go1.26.0", tmp_path)
    assert before == parts.fingerprint(part, "go1.26.0", tmp_path)
    assert before != parts.fingerprint(part, "go1.26.1", tmp_path)
    assert before != parts.fingerprint(parts.Part("thing", {"thing": "."}, {"v": "1"}), "go1.26.0", tmp_path)
    (tmp_path / "go.mod").write_text("module other\n")
    assert before != parts.fingerprint(part, "go1.26.0", tmp_path)


def test_the_version_that_kubernetes_reports_is_the_one_that_is_built() -> None:
    definition = (PARTS / "kubernetes/go.mod").read_text()
    assert re.search(rf"^\tk8s.io/kubernetes v{re.escape(parts.KUBERNETES_VERSION)}\b", definition, re.MULTILINE)


def sources(root: Path) -> None:
    for name in ("images/Dockerfile", "pyproject.toml", "README.md", "LICENSE", "trainer/rltrain/a.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    for name in ("operator", "requirements"):
        (root / name).mkdir()
    for target in images.TARGETS:
        (root / f"requirements/{target}.txt").write_text(target)


def test_images_get_a_new_tag_when_code_changes_but_not_from_running_it(tmp_path: Path) -> None:
    sources(tmp_path)
    before = images.tags(tmp_path)
    (tmp_path / "trainer/rltrain/__pycache__").mkdir()
    (tmp_path / "trainer/rltrain/__pycache__/a.pyc").write_bytes(b"compiled")
    assert images.tags(tmp_path) == before
    (tmp_path / "trainer/rltrain/a.py").write_text("changed")
    after = images.tags(tmp_path)
    assert all(after[target] != before[target] for target in images.TARGETS)


def test_only_the_image_whose_dependencies_change_gets_a_new_tag(tmp_path: Path) -> None:
    sources(tmp_path)
    before = images.tags(tmp_path)
    (tmp_path / "requirements/operator.txt").write_text("kopf")
    after = images.tags(tmp_path)
    assert after["trainer"] == before["trainer"]
    assert after["operator"] != before["operator"]


def test_only_the_tag_of_a_reference_is_replaced() -> None:
    assert images.retagged("127.0.0.1:5000/rltrain-operator:abc", "new") == "127.0.0.1:5000/rltrain-operator:new"


def test_a_registry_that_has_grown_too_large_starts_afresh(tmp_path: Path) -> None:
    blob = tmp_path / "registry/blobs/one"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(bytes(100))
    images.trim_registry(tmp_path / "registry", most_bytes=100)
    assert blob.exists()
    images.trim_registry(tmp_path / "registry", most_bytes=99)
    assert not blob.exists()


def test_an_image_archive_holds_the_program_and_digests_that_match(tmp_path: Path) -> None:
    program = tmp_path / "hello"
    program.write_bytes(b"#!program")
    oci.write_image(program, "localhost/hello:1", tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:
        blobs = {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive
        }
    for name, content in blobs.items():
        if name.startswith("blobs/"):
            assert name.endswith(hashlib.sha256(content).hexdigest())
    described = json.loads(blobs["index.json"])["manifests"][0]
    manifest = json.loads(blobs[f"blobs/sha256/{described['digest'].removeprefix('sha256:')}"])
    config = json.loads(blobs[f"blobs/sha256/{manifest['config']['digest'].removeprefix('sha256:')}"])
    assert config["config"] == {"Entrypoint": ["/hello"], "User": "1000:1000"}
    assert described["annotations"]["io.containerd.image.name"] == "localhost/hello:1"


def test_flags_are_written_as_go_programs_read_them() -> None:
    assert configs.flags(leader_elect=False, secure_port=6443) == ["--leader-elect=false", "--secure-port=6443"]


def test_every_server_listens_on_the_node_or_on_loopback(tmp_path: Path) -> None:
    commands = {**configs.control_plane(tmp_path), **configs.workers(tmp_path)}
    assert not [word for command in commands.values() for word in command if "0.0.0.0" in word or "[::]" in word]
    assert "--bind-address=10.213.77.2" in commands["kube-apiserver"]
    assert configs.registry(tmp_path)["http"]["addr"].startswith("10.213.77.2:")


def test_kind_writes_its_audit_log_into_a_folder_of_the_machine() -> None:
    mounts = kind.configuration()["nodes"][0]["extraMounts"]
    seen = {mount["containerPath"]: mount["hostPath"] for mount in mounts}
    patch = kind.api_server_patch()
    flag = next(step["value"] for step in patch if "--audit-log-path=" in str(step["value"]))
    inside, _, name = flag.removeprefix("--audit-log-path=").rpartition("/")
    assert Path(seen[inside], name) == kind.AUDIT / "audit.log"
    volumes = [step["value"]["hostPath"]["path"] for step in patch if step["path"] == "/spec/volumes/-"]
    assert set(volumes) < set(seen)


def test_volumes_have_names_and_folders_of_their_own(tmp_path: Path) -> None:
    names = manifests.volume_names()
    paths = {manifests.volume(name, tmp_path)["spec"]["local"]["path"] for name in names}
    assert len(paths) == len(names) >= 12


def test_a_process_is_told_from_a_later_one_and_from_a_dead_one() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    started = node.start_ticks(child.pid)
    assert started is not None
    assert started > (node.start_ticks(1) or 0)
    assert node.Node(child.pid, started, "", {}, []).alive
    assert not node.Node(child.pid, started + 1, "", {}, []).alive
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not node.Node(child.pid, started, "", {}, []).alive  # it still has its number, as a zombie
    child.communicate()
    assert not node.Node(child.pid, started, "", {}, []).alive


def test_packages_that_are_not_installed_are_found() -> None:
    assert packages.missing(("dpkg", "no-such-package-of-any-kind")) == ["no-such-package-of-any-kind"]


def test_waiting_in_vain_says_what_for_and_gives_the_clue() -> None:
    with pytest.raises(TestbedError, match=r"the moon not there after 0 s\nit is day"):
        wait_until("the moon", lambda: False, 0, lambda: "it is day")
