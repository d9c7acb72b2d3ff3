"""Reading a job's volume from outside of it."""

import json

from e2e.kube import Kube

_SCRIPT = """
import json, pathlib, sys
root = pathlib.Path("/data") / sys.argv[1]
texts = [p for p in root.rglob("*") if p.suffix in (".json", ".jsonl", ".yaml") and p.is_file()]
print(json.dumps({str(p.relative_to(root)): p.read_text() for p in texts}))
"""


def read_volume(kube: Kube, image: str, claim: str, folder: str) -> dict[str, str]:
    """The text files below a folder of a claim, by their path in it, read by a pod of their own."""
    name = "volume-reader"
    container = {
        "name": "reader",
        "image": image,
        "command": ["python", "-c", _SCRIPT, folder],
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }
    kube.apply(pod)
    kube.wait("the volume is read", lambda: (kube.get("pod", name) or {})["status"]["phase"] == "Succeeded", 60)
    files: dict[str, str] = json.loads(kube.kubectl("logs", name))
    kube.delete("pod", name)
    return files
