"""Reading pods of a job."""

import json
from typing import Final

from rltrain.api import names
from rltrain.api.seen import Object

CONTAINER: Final = "rltrain"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


def role_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(names.LABEL_ROLE, "?"))


def index_of(pod: Object) -> int:
    """The pod's place in its role."""
    labels = {**(pod["metadata"].get("annotations") or {}), **(pod["metadata"].get("labels") or {})}
    text = str(labels.get(_INDEX, "0"))
    return int(text) if text.isdecimal() else 0


def log_name(pod: Object) -> str:
    """Prefix of its lines: there is one head, the others have numbers."""
    role = role_of(pod)
    return role if role == names.HEAD else f"{role}-{index_of(pod)}"


def log_line(pod: Object, line: str, output: str | None) -> str:
    """A line of its log as it is printed."""
    if output != "json":
        return f"{log_name(pod)} | {line}"
    return json.dumps({"pod": pod["metadata"]["name"], "role": role_of(pod), "index": index_of(pod), "line": line})


def latest(pods: list[Object]) -> list[Object]:
    """The newest pod of each role and index, of pods in the order they were made in; the head first."""
    newest = {(role_of(pod) != names.HEAD, role_of(pod), index_of(pod)): pod for pod in pods}
    return [newest[key] for key in sorted(newest)]


def container_status(pod: Object) -> Object:
    """What the kubelet says of our container; empty before it knows it."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return next((status for status in statuses if status["name"] == CONTAINER), {})


def container_started(pod: Object) -> bool:
    """Whether there is a log."""
    status = container_status(pod)
    state = status.get("state") or {}
    return "running" in state or "terminated" in state or status.get("restartCount", 0) > 0


def is_running(pod: Object) -> bool:
    """Whether commands can be run in it."""
    return "running" in (container_status(pod).get("state") or {}) and "deletionTimestamp" not in pod["metadata"]
