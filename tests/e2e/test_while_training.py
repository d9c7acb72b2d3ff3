"""What is done to a job of two ranks, with an environment of the user's own, while it trains."""

import base64
import json
import time
from pathlib import Path

import pytest

from e2e.cli import rltrain
from e2e.installation import Images, Operator, wait_installed
from e2e.kube import Kube, Object, progress
from e2e.manifests import example
from e2e.pods import said, script_pod
from e2e.user_code import CONFIG_MAP, ENV, config_map

pytestmark = pytest.mark.cluster

NAME = "training"
PASSWORD = "correct-horse-battery-staple"
"""In a Secret of the user's that all pods have in their environment."""

_CONNECT = """
import socket, sys, time
deadline = time.monotonic() + float(sys.argv[2])
while True:
    try:
        socket.create_connection((sys.argv[1], 6379), timeout=3).close()
        print("CONNECTED"); break
    except OSError as error:
        if time.monotonic() > deadline:
            print("REFUSED", error); break
"""
_OUT = """
import socket, sys, time
host, port, wanted = sys.argv[1:]
deadline = time.monotonic() + 40
while True:
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
        state = "open"
    except OSError:
        state = "closed"
    if state == wanted or time.monotonic() > deadline:
        print(state); break
    time.sleep(0.5)
"""
_RAY_WITHOUT_TOKEN = """
import os, sys
os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64} if sys.argv[2] == "wrong" else {})
import ray
try:
    ray.init(address=f"{sys.argv[1]}:6379", log_to_driver=False)
    print("JOINED", len(ray.nodes()))
except BaseException as error:
    print("REFUSED", type(error).__name__, str(error)[:300])
"""


@pytest.fixture(scope="module")
def job(shared: Kube) -> Object:
    """The job, once both ranks train and something is saved."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "account"},
        "stringData": {"PASSWORD": PASSWORD},
    }
    manifest = example(
        "cartpole-ddppo",
        NAME,
        env={"id": ENV},
        code={"configMap": {"name": CONFIG_MAP}},
        stop={"timeSeconds": 3000},
        checkpoint__everySeconds=2,
        envFrom=[{"secretRef": {"name": "account"}}],
    )
    shared.apply(config_map(), secret, manifest)
    job = shared.wait_steps(NAME, 1000, timeout=240)
    assert progress(job)["workersHealthy"] == 2
    shared.wait("a checkpoint", lambda: shared.job(NAME)["status"].get("checkpoint"), 60)
    return job


def test_checkpoint_is_fetched_through_the_head(shared: Kube, job: Object, tmp_path: Path) -> None:
    rltrain("fetch", NAME, "-n", shared.namespace, "--out", str(tmp_path / "fetched"))

    (checkpoint,) = (tmp_path / "fetched/checkpoints").iterdir()
    assert 0 < int(checkpoint.name.split("-")[0]) <= progress(shared.job(NAME))["envSteps"] + 10_000


def test_stranger_is_kept_out_by_the_policy_and_a_client_without_the_token_by_ray(
    shared: Kube, job: Object, images: Images
) -> None:
    head = f"{NAME}-head-0.{NAME}"
    own = {"rltrain.dev/job-uid": job["metadata"]["uid"]}
    clients = ("missing", "wrong")

    shared.apply(
        script_pod("insider", images.operator, _CONNECT, head, "20", labels=own),
        script_pod("stranger", images.operator, _CONNECT, head, "10"),
        *(script_pod(kind, images.trainer, _RAY_WITHOUT_TOKEN, head, kind, labels=own) for kind in clients),
    )

    assert "CONNECTED" in said(shared, "insider")
    for kind in clients:
        words = said(shared, kind)
        assert "REFUSED" in words, words
        assert "JOINED" not in words
    assert "REFUSED" in said(shared, "stranger")

    shared.delete("networkpolicy", NAME)
    shared.apply(script_pod("stranger-again", images.operator, _CONNECT, head, "20"))
    assert "CONNECTED" in said(shared, "stranger-again")


def test_pods_get_out_to_nobody_else_once_the_platform_says_so_and_the_job_trains_on(
    shared: Kube, job: Object, images: Images, reinstalled: Operator
) -> None:
    own = {"rltrain.dev/job-uid": job["metadata"]["uid"]}
    listen = "import socket, time; listener = socket.create_server(('', 8000)); time.sleep(3600)"
    shared.apply(
        script_pod("outside", images.operator, listen),
        script_pod("inside", images.operator, "import time; time.sleep(3600)", labels=own),
    )
    shared.kubectl("wait", "--for=condition=Ready", "pod/inside", "pod/outside", "--timeout=60s")
    outside = (shared.get("pod", "outside") or {})["status"]["podIP"]

    def way(host: str, port: int, wanted: str) -> str:
        return shared.kubectl("exec", "inside", "--", "python", "-c", _OUT, host, str(port), wanted).strip()

    assert way(outside, 8000, "open") == "open"
    wait_installed(images, "--set=jobNetworkPolicy.restrictEgress=true")

    assert way(outside, 8000, "closed") == "closed"
    assert way(f"{NAME}-head-0.{NAME}", 6379, "open") == "open"
    assert way("kubernetes.default", 443, "open") == "open", "where the driver reports to"
    shared.wait_steps(NAME, progress(shared.job(NAME))["envSteps"] + 1000, 120)


def test_secrets_are_in_no_log_event_or_status_nor_in_any_other_object(
    shared: Kube, job: Object, operator: Operator
) -> None:
    kept = shared.get("secret", f"{NAME}-token")
    assert kept is not None
    secrets = {PASSWORD, kept["data"]["token"], base64.b64decode(kept["data"]["token"]).decode()}
    kinds = "rltj,jobs,pods,services,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,pvc,events"
    told = {"objects": shared.kubectl("get", kinds, "-o", "json"), "operator": operator.logs()}
    for pod in shared.pods(NAME):
        name = pod["metadata"]["name"]
        told[name] = shared.kubectl("logs", name, "--all-containers", "--tail=-1")
        # What stays on the volume, and Ray's own logs.
        found = shared.run("exec", name, "--", "grep", "-rlF", *(f"-e{secret}" for secret in secrets), "/data", "/tmp")
        assert found.stdout == ""

    assert all(told.values())
    for place, text in told.items():
        assert [secret for secret in secrets if secret in text] == [], place


def test_training_goes_on_with_one_rank_within_60_s_and_regains_two(shared: Kube, job: Object) -> None:
    # A pod that may not come back at once: the node takes no new pods while training must go on.
    lost = shared.pods(NAME, "workers")[1]
    node = lost["spec"]["nodeName"]
    shared.kubectl("cordon", node)
    try:
        shared.delete("pod", lost["metadata"]["name"], "--wait=false")
        lost_at = time.monotonic()

        def alone() -> dict[str, object] | None:
            now = progress(shared.job(NAME))
            return now if now["workersHealthy"] == 1 else None

        alone_at = shared.wait("one rank is left", alone, 60)

        def trained_alone() -> bool:
            now = progress(shared.job(NAME))
            return bool(now["workersHealthy"] == 1 and now["envSteps"] > alone_at["envSteps"])

        shared.wait("steps trained by the remaining rank", trained_alone, 60 - (time.monotonic() - lost_at))
    finally:
        shared.kubectl("uncordon", node)

    def whole() -> bool:
        return bool(progress(shared.job(NAME))["workersHealthy"] == 2)

    shared.wait("two ranks again", whole, 120)
    again = progress(shared.job(NAME))["envSteps"]
    shared.wait_steps(NAME, again + 3000, timeout=60)

    head = shared.pods(NAME, "head")[0]["metadata"]["name"]
    text = shared.kubectl("exec", head, "--", "cat", f"/data/{job['metadata']['uid']}/results.jsonl")
    results = [json.loads(line) for line in text.splitlines()]
    ranks = [result["num_healthy_workers"] for result in results]
    assert ranks[0] == 2
    assert 1 in ranks
    assert ranks[-1] == 2
    hashes = [result["rank_hashes"] for result in results if "rank_hashes" in result]
    assert hashes, "ranks compare their hashes"
    assert all(len(set(of_ranks)) == 1 for of_ranks in hashes), "ranks identical, before and after"
    assert any(len(of_ranks) == 2 for of_ranks in hashes[-3:])


def test_job_is_deleted_in_mid_training_with_its_volume(shared: Kube, job: Object) -> None:
    waited = rltrain("delete", NAME, "-n", shared.namespace, "--wait", "--purge")

    assert "deleted" in waited.stdout
    assert shared.pods(NAME) == []
