"""A job's Ray is reachable for its own pods only, and only with its token."""

import pytest

from e2e.installation import Images
from e2e.kube import Kube, Object
from e2e.manifests import example

pytestmark = pytest.mark.cluster

_CONNECT = """
import socket, sys, time
deadline = time.monotonic() + 20
while True:
    try:
        socket.create_connection((sys.argv[1], 6379), timeout=3).close()
        print("CONNECTED"); break
    except OSError as error:
        if time.monotonic() > deadline:
            print("REFUSED", error); break
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


def test_stranger_is_kept_out_by_the_policy_and_a_client_without_the_token_by_ray(kube: Kube, images: Images) -> None:
    name = "private"
    kube.apply(example("cartpole-ddppo", name, stop={"timeSeconds": 3000}))
    job = kube.wait_steps(name, 1000, timeout=240)
    head = f"{name}-head-0.{name}"
    own = {"rltrain.dev/job-uid": job["metadata"]["uid"]}

    assert "CONNECTED" in _script(kube, images, "insider", _CONNECT, head, labels=own)
    assert "REFUSED" in _script(kube, images, "stranger", _CONNECT, head)
    for kind in ("missing", "wrong"):
        said = _script(kube, images, f"ray-{kind}", _RAY_WITHOUT_TOKEN, head, kind, labels=own)
        assert "REFUSED" in said, said
        assert "JOINED" not in said

    kube.delete("networkpolicy", name)
    assert "CONNECTED" in _script(kube, images, "stranger-again", _CONNECT, head)


def _script(
    kube: Kube, images: Images, name: str, script: str, *args: str, labels: dict[str, str] | None = None
) -> str:
    """What a restricted pod prints that runs a Python script."""
    container: Object = {
        "name": "main",
        "image": images.trainer,
        "command": ["python", "-c", script, *args],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
            },
        }
    )
    kube.wait(f"{name} ended", lambda: (kube.get("pod", name) or {})["status"]["phase"] in ("Succeeded", "Failed"), 150)
    said = kube.kubectl("logs", name)
    kube.delete("pod", name, "--wait=false")
    return said
