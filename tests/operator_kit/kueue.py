"""Kueue's Workloads as the API server hands them out, and a cluster that has Kueue."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from operator_kit.manifests import UID, job, manifest
from operator_kit.seen import World
from rltrain_operator.plan import Workload
from rltrain_operator.render import ANNOTATION_MANIFEST, Served, manifest_hash

Object = dict[str, Any]
Said = tuple[str, str, str]
"""Status, reason and message of a condition."""
SERVED = Served(kueue="v1beta2")
QUEUE = {"queueName": "team"}
FLAVOR = {"spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}}
ADMISSION = {
    "clusterQueue": "all",
    "podSetAssignments": [
        {"name": name, "flavors": {"cpu": "fast", "memory": "fast"}} for name in ("head", "rollouts")
    ],
}
ADMITTED: dict[str, Said] = {
    "QuotaReserved": ("True", "QuotaReserved", "reserved"),
    "Admitted": ("True", "Admitted", "admitted"),
}
PREEMPTED = ("True", "Preempted", "Preempted to accommodate a workload (UID: x) due to prioritization")


def workload(
    conditions: Mapping[str, Said] = MappingProxyType({}),
    *,
    uid: str = UID,
    made_for: Object | None = None,
    admission: Object | None = None,
) -> Workload:
    """A Workload of a job's."""
    tree = made_for or manifest(scheduling=QUEUE)
    status: Object = {
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "message": words, "lastTransitionTime": "t"}
            for kind, (status, reason, words) in conditions.items()
        ]
    }
    if admission is not None:
        status["admission"] = admission
    metadata: Object = {
        "name": "cartpole",
        "namespace": "team",
        "uid": f"workload-of-{uid}",
        "resourceVersion": "7",
        "generation": 2,
        "annotations": {ANNOTATION_MANIFEST: manifest_hash(job(**tree["spec"]))},
        "ownerReferences": [{"kind": "RLTrainingJob", "uid": uid, "controller": True}],
    }
    return Workload({"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": metadata, "spec": QUEUE, "status": status})


def admitted(**conditions: Said) -> Workload:
    return workload({**ADMITTED, **conditions}, admission=ADMISSION)


def queued_world(**spec: Any) -> World:
    """A job in a queue of a cluster with Kueue."""
    world = World(scheduling=QUEUE, **spec)
    world.seen = replace(world.seen, served=SERVED)
    return world


def see(world: World, seen: Workload | None, **flavors: Object) -> None:
    """What the next visits see."""
    world.seen = replace(
        world.seen, workload=seen, found={("ResourceFlavor", name): made for name, made in flavors.items()}
    )
