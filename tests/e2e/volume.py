"""Reading a job's volume from outside of it."""

import json

from e2e.kube import Kube
from e2e.pods import said, script_pod

_SCRIPT = """
import json, pathlib, sys
root = pathlib.Path("/data") / sys.argv[1]
texts = [p for p in root.rglob("*") if p.suffix in (".json", ".jsonl", ".yaml") and p.is_file()]
print(json.dumps({str(p.relative_to(root)): p.read_text() for p in texts}))
"""


def read_volume(kube: Kube, image: str, claim: str, folder: str) -> dict[str, str]:
    """The text files below a folder of a claim, by their path in it, read by a pod of their own."""
    pod = script_pod("volume-reader", image, _SCRIPT, folder)
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data", "readOnly": True}]
    kube.apply(pod)
    files: dict[str, str] = json.loads(said(kube, "volume-reader"))
    return files
