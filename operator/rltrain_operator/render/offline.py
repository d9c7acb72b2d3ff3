"""What the operator would make on a cluster that nobody has looked at: as the manifest has it, with what it names."""

from dataclasses import dataclass

from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import Object, OperatorConfig, Served, gang, render
from rltrain_operator.render.workload import VERSIONS, workload


@dataclass(frozen=True)
class Offline:
    """Objects in the order in which they are made.

    Attributes:
        assumptions: sentences about the cluster that they are for.
    """

    objects: list[Object]
    assumptions: list[str]


def render_offline(job: RLTrainingJob, config: OperatorConfig, token: str, *, volcano: bool = False) -> Offline:
    """All objects of a job, for a cluster with the schedulers that its manifest asks for.

    Args:
        volcano: whether the cluster has Volcano, where the manifest leaves that open.

    Raises:
        InvalidManifest: see `render`.
    """
    scheduling = job.spec.scheduling
    served = Served(
        kueue=VERSIONS[0] if scheduling.in_kueue else None,
        volcano=volcano or scheduling.gang == "Volcano",
        pod_groups=gang.VERSIONS[0] if scheduling.gang == "Kubernetes" else None,
    )
    objects = render(job, config, token, served)
    assumptions: list[str] = []
    if scheduling.in_kueue:
        jobs = [each for each in objects if each["kind"] == "Job"]
        objects = [workload(job, config, served, jobs, priority=None), *objects]
        assumptions.append(
            f"a cluster with Kueue is assumed (spec.scheduling.queueName), its API in version {served.kueue}: all but "
            "the Workload is made once that is admitted, with its flavors' node labels and tolerations in the Jobs"
        )
        if scheduling.priority_class_name is not None:
            name = scheduling.priority_class_name
            assumptions.append(f"the Workload's priority, that of PriorityClass {name}, is read from the cluster")
    keeper = gang.keeper(scheduling, served)
    if keeper == "Volcano":
        why = "spec.scheduling.gang" if scheduling.gang == "Volcano" else "--volcano"
        assumptions.append(f"a cluster with Volcano is assumed ({why})")
    if keeper == "Kubernetes":
        assumptions.append(
            "a cluster with Kubernetes' own gang scheduling is assumed (spec.scheduling.gang), its API in version "
            f"{served.pod_groups}"
        )
    return Offline(objects, assumptions)
