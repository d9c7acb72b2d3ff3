"""A pod of the job's volume to read it from: the head while it runs, or one of our own for a moment."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from rltrain.api import names
from rltrain.api.errors import RltrainError
from rltrain.api.seen import Object
from rltrain.cli.cluster import Cluster
from rltrain.cli.jobs import JobView
from rltrain.cli.pods import CONTAINER, is_running
from rltrain.cli.refusals import NoSuchObject

START_SECONDS: Final = 180.0
LIFETIME_SECONDS: Final = 1800
"""After which the kubelet ends a reader whose creator died."""
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Reader:
    """A running container with the job's volume below `names.DATA_PATH`."""

    pod: str
    container: str = CONTAINER


@contextmanager
def reader(cluster: Cluster, job: JobView) -> Iterator[Reader]:
    """The job's head, or a pod made for this that is deleted afterwards in any case.

    Raises:
        RltrainError: no pod can be had, with the cluster's own words.
    """
    head = _running_head(cluster, job)
    if head is not None:
        yield Reader(head)
        return
    pod = _reader_pod(cluster, job)
    name = pod["metadata"]["name"]
    cluster.create("pods", pod)
    try:
        _wait_running(cluster, name)
        yield Reader(name)
    finally:
        cluster.delete("pods", name, grace_seconds=0)


def _running_head(cluster: Cluster, job: JobView) -> str | None:
    selector = {names.LABEL_JOB_UID: job.uid, names.LABEL_ROLE: names.HEAD}
    for pod in cluster.select("pods", selector)["items"]:
        if is_running(pod):
            return str(pod["metadata"]["name"])
    return None


def _reader_pod(cluster: Cluster, job: JobView) -> Object:
    """Fit for restricted namespaces, and where the head's pods are allowed to be."""
    head = _head_template(cluster, job)
    container = next(c for c in head["containers"] if c["name"] == CONTAINER)
    copied = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "securityContext", "runtimeClassName")
    owner = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": job.name, "uid": job.uid}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": job.claim}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job.name}-fetch-{uuid.uuid4().hex[:8]}",
            "namespace": cluster.namespace,
            # Not the job's own labels: its Service and its policy aren't for this pod.
            "labels": {names.LABEL_MANAGED_BY: "rltrain-cli"},
            "ownerReferences": [owner],
        },
        "spec": {
            **{key: head[key] for key in copied if key in head},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LIFETIME_SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "volumes": [volume],
            "containers": [_container(container)],
        },
    }


def _container(head: Object) -> Object:
    copied = ("image", "imagePullPolicy", "securityContext")
    return {
        "name": CONTAINER,
        **{key: head[key] for key in copied if key in head},
        "command": ["python", "-c", f"import time; time.sleep({LIFETIME_SECONDS})"],
        "volumeMounts": [{"name": "data", "mountPath": names.DATA_PATH, "readOnly": True}],
    }


def _head_template(cluster: Cluster, job: JobView) -> dict[str, Any]:
    try:
        template: dict[str, Any] = cluster.get("batch/v1/jobs", f"{job.name}-{names.HEAD}")["spec"]["template"]["spec"]
    except NoSuchObject:
        raise RltrainError(
            f"{job.name} has no head to take the image from, so its volume can't be read: {job.why or 'it never ran'}"
        ) from None
    return template


def _wait_running(cluster: Cluster, name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        pod = cluster.get("pods", name)
        phase = pod["status"].get("phase")
        if phase == "Running":
            return
        if phase in ("Failed", "Succeeded"):
            raise RltrainError(f"the pod {name} that reads the volume ended at once: {_why(pod)}")
        if time.monotonic() > deadline:
            raise RltrainError(f"the pod {name} that reads the volume doesn't start: {_why(pod)}")
        time.sleep(_POLL_SECONDS)


def _why(pod: Object) -> str:
    status = pod["status"]
    for container in status.get("containerStatuses", []):
        for state in container["state"].values():
            if state.get("message") or state.get("reason"):
                return f"{state.get('reason', '')} {state.get('message', '')}".strip()
    for condition in status.get("conditions", []):
        if condition["status"] == "False" and condition.get("message"):
            return str(condition["message"])
    return str(status.get("message") or "no reason is given")
