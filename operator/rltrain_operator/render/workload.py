"""Kueue's Workload: one for the whole job, with a pod set for each role, and what its admission asks of the pods."""

from collections.abc import Iterator, Mapping, Sequence

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render.context import ANNOTATION_MANIFEST, Context, Object, OperatorConfig, Served

GROUP = "kueue.x-k8s.io"
KIND = "Workload"
VERSIONS = ("v1beta2", "v1beta1")
"""Of Kueue's API, those that can be spoken, the best first."""
PRIORITY_GROUP = "scheduling.k8s.io"


def workload(
    job: RLTrainingJob, config: OperatorConfig, served: Served, jobs: Sequence[Object], priority: int | None
) -> Object:
    """The Workload for a job's Jobs as they are rendered.

    Args:
        job: the manifest.
        config: what the operator adds.
        served: with a version of Kueue's API.
        jobs: the Jobs, one for each role.
        priority: value of the PriorityClass that the manifest names; None where it names none.
    """
    scheduling = job.spec.scheduling
    spec: Object = {"queueName": scheduling.queue_name, "podSets": [_pod_set(each) for each in jobs]}
    if scheduling.priority_class_name is not None and priority is not None:
        spec |= {"priority": priority, **_priority_class(scheduling.priority_class_name, served)}
    ctx = Context(job, config, served)
    made = ctx.object(f"{GROUP}/{served.kueue}", KIND, ctx.name, spec=spec)
    mark = {ANNOTATION_MANIFEST: jobs[0]["metadata"]["annotations"][ANNOTATION_MANIFEST]}
    return {**made, "metadata": {**made["metadata"], "annotations": mark}}


def _pod_set(job: Object) -> Object:
    template = job["spec"]["template"]
    # Kueue takes no other metadata.
    metadata = {key: value for key, value in template["metadata"].items() if key in ("labels", "annotations")}
    return {"name": _role(job), "count": job["spec"]["completions"], "template": {**template, "metadata": metadata}}


def _priority_class(name: str, served: Served) -> Object:
    if served.kueue == "v1beta1":
        return {"priorityClassName": name, "priorityClassSource": f"{PRIORITY_GROUP}/priorityclass"}
    return {"priorityClassRef": {"group": PRIORITY_GROUP, "kind": "PriorityClass", "name": name}}


def flavors(seen: Object) -> tuple[str, ...]:
    """Names of the ResourceFlavors that a Workload was admitted with."""
    assigned = (flavor for each in _assignments(seen) for flavor in (each.get("flavors") or {}).values())
    return tuple(dict.fromkeys(assigned))


def placed(jobs: Sequence[Object], seen: Object, found: Mapping[str, Object]) -> list[Object]:
    """Jobs whose pods go where an admitted Workload has its quota.

    Args:
        jobs: the Jobs as they are rendered.
        seen: the Workload.
        found: the flavors, by name.
    """
    asked: dict[str, list[Object]] = {}
    for each in _assignments(seen):
        flavors = dict.fromkeys((each.get("flavors") or {}).values())
        specs = [found[name].get("spec") or {} for name in flavors]
        asked[each["name"]] = [
            {"nodeSelector": spec.get("nodeLabels") or {}, "tolerations": spec.get("tolerations") or []}
            for spec in specs
        ]
    for update in _updates(seen):
        asked.setdefault(update["name"], []).append(update)
    return [_with(job, asked.get(_role(job), [])) for job in jobs]


def _assignments(seen: Object) -> list[Object]:
    found: list[Object] = (seen.get("status", {}).get("admission") or {}).get("podSetAssignments") or []
    return found


def _updates(seen: Object) -> Iterator[Object]:
    """What admission checks ask for, such as nodes that were provisioned for the job."""
    for check in seen.get("status", {}).get("admissionChecks") or []:
        yield from check.get("podSetUpdates") or []


def _role(job: Object) -> str:
    return str(job["metadata"]["labels"][names.LABEL_ROLE])


def _with(job: Object, asked: Sequence[Object]) -> Object:
    template = job["spec"]["template"]
    metadata, spec = dict(template["metadata"]), dict(template["spec"])
    for each in asked:
        for part, key in ((spec, "nodeSelector"), (metadata, "labels"), (metadata, "annotations")):
            if each.get(key):
                part[key] = {**(part.get(key) or {}), **each[key]}
        if each.get("tolerations"):
            spec["tolerations"] = [*(spec.get("tolerations") or []), *each["tolerations"]]
    return {**job, "spec": {**job["spec"], "template": {"metadata": metadata, "spec": spec}}}
