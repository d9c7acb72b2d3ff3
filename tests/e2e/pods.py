"""Pods of the tests' own, which the `restricted` standard admits."""

from typing import Any

from e2e.kube import Kube, Object


def script_pod(name: str, image: str, script: str, *args: str, labels: dict[str, str] | None = None) -> Object:
    """A pod that runs a Python script once."""
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "command": ["python", "-c", script, *args],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }


def said(kube: Kube, name: str) -> str:
    """What a pod has printed by its end."""

    def ended() -> bool:
        return (kube.get("pod", name) or {})["status"]["phase"] in ("Succeeded", "Failed")

    kube.wait(f"{name} ended", ended, 150)
    return kube.kubectl("logs", name)
