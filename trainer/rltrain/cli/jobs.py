"""A cluster's jobs and what belongs to them."""

from typing import Final

from rltrain.api import names
from rltrain.api.errors import InvalidInput
from rltrain.cli.cluster import Cluster, Object
from rltrain.cli.hints import nearest
from rltrain.cli.refusals import NoSuchObject

CONTAINER: Final = "rltrain"
"""Name of our container in every pod of a job."""
FINISHED: Final = ("Succeeded", "Failed")
_ROLE_ORDER: Final = (names.HEAD, names.ROLLOUTS, names.WORKERS)


def find_job(cluster: Cluster, name: str, *, missing_ok: bool = False) -> Object | None:
    """The job of a name.

    Raises:
        InvalidInput: there is none, with the nearest name that there is.
    """
    try:
        return cluster.get(names.PLURAL, name)
    except NoSuchObject:
        if missing_ok:
            return None
        known = [item["metadata"]["name"] for item in cluster.select(names.PLURAL)["items"]]
        raise InvalidInput(f"there is no job {name} in namespace {cluster.namespace}{nearest(name, known)}") from None


def get_job(cluster: Cluster, name: str) -> Object:
    """As `find_job`, of one that must be there."""
    found = find_job(cluster, name)
    assert found is not None
    return found


def is_there(cluster: Cluster, name: str, uid: str) -> bool:
    """Whether this very job still exists, and not a namesake."""
    found = find_job(cluster, name, missing_ok=True)
    return found is not None and found["metadata"]["uid"] == uid


def pods_of(cluster: Cluster, name: str, uid: str, role: str | None = None) -> list[Object]:
    """The job's pods, the head's first, each role's in the order of their indexes."""
    selector = {names.LABEL_JOB: name, names.LABEL_JOB_UID: uid} | ({names.LABEL_ROLE: role} if role else {})
    return sorted(cluster.select("pods", **selector)["items"], key=_order)


def role_of(pod: Object) -> str:
    """A pod's role, as its labels say."""
    return str(pod["metadata"]["labels"].get(names.LABEL_ROLE, "?"))


def index_of(pod: Object) -> int:
    """A pod's index within its role."""
    return int(pod["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", 0))


def claim_of(cluster: Cluster, name: str) -> str | None:
    """The claim that was made for jobs of this name, if it is there; never one that a user brought."""
    claim = f"{name}-checkpoints"
    try:
        found = cluster.get("persistentvolumeclaims", claim)
    except NoSuchObject:
        return None
    labels = found["metadata"].get("labels", {})
    made_by_us = labels.get(names.LABEL_MANAGED_BY) == names.MANAGED_BY and labels.get(names.LABEL_JOB) == name
    return claim if made_by_us else None


def condition(job: Object, kind: str) -> Object | None:
    """A job's condition of a type."""
    return next((c for c in job.get("status", {}).get("conditions", []) if c["type"] == kind), None)


def why(job: Object) -> str:
    """The sentence that tells best where a job is: of its end, or of what it waits for."""
    for kind, wanted in (("Failed", "True"), ("Succeeded", "True"), ("Accepted", "False"), ("ClusterReady", "False")):
        found = condition(job, kind)
        if found is not None and found["status"] == wanted:
            return f"{found['reason']}: {found['message']}"
    found = condition(job, "Training")
    if found is not None:
        return f"{found['reason']}: {found['message']}"
    return "no operator has seen it yet: is rltrain's operator running (kubectl get deployments -A)?"


def _order(pod: Object) -> tuple[int, int]:
    role = role_of(pod)
    return (_ROLE_ORDER.index(role) if role in _ROLE_ORDER else len(_ROLE_ORDER), index_of(pod))
