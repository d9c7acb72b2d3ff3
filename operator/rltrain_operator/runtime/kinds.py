"""Addresses of the kinds that the operator handles."""

from dataclasses import dataclass, replace
from typing import Final

from rltrain.api import names
from rltrain.api.seen import Object
from rltrain_operator.render import gang


@dataclass(frozen=True)
class Kind:
    """One kind of object."""

    name: str
    group: str
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Path below the API server's address; no namespace means all of them."""
        parts = [f"apis/{self.group}" if self.group else "api", self.version]
        parts += ["namespaces", namespace] if namespace else []
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


TRAINING_JOB: Final = Kind(names.KIND, names.GROUP, names.VERSION, names.PLURAL)
JOB: Final = Kind("Job", "batch", "v1", "jobs")
POD: Final = Kind("Pod", "", "v1", "pods")
EVENT: Final = Kind("Event", "", "v1", "events")
EVENT_TO_POST: Final = Kind("Event", "events.k8s.io", "v1", "events")
LEASE: Final = Kind("Lease", "coordination.k8s.io", "v1", "leases")
ENDPOINT_SLICE: Final = Kind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices")
NAMESPACE: Final = Kind("Namespace", "", "v1", "namespaces")
SECRET: Final = Kind("Secret", "", "v1", "secrets")

LISTED: Final = (
    Kind("Service", "", "v1", "services"),
    Kind("ConfigMap", "", "v1", "configmaps"),
    Kind("ServiceAccount", "", "v1", "serviceaccounts"),
    Kind("Role", "rbac.authorization.k8s.io", "v1", "roles"),
    Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings"),
    Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies"),
)
"""Children compared with what they should be on each resync; nothing watches them."""

CREATED: Final = (
    SECRET,
    Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"),
)
"""Children made once."""

VOLCANO: Final = Kind(gang.KIND, gang.VOLCANO, gang.VOLCANO_VERSION, "podgroups")
"""PodGroups, listed too where the cluster has Volcano."""

PRIORITY_CLASS: Final = Kind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses")

KUEUE: Final = "kueue.x-k8s.io"


def workloads(version: str) -> Kind:
    """Kueue's Workloads in one of their versions."""
    return Kind("Workload", KUEUE, version, "workloads")


def pod_groups(version: str) -> Kind:
    """Kubernetes' own PodGroups in one of their versions."""
    return Kind(gang.KIND, gang.KUBERNETES, version, "podgroups")


def resource_flavors(version: str) -> Kind:
    return Kind("ResourceFlavor", KUEUE, version, "resourceflavors")


_CHILDREN: Final = {
    (kind.group, kind.name): kind for kind in (JOB, *LISTED, *CREATED, VOLCANO, workloads(""), pod_groups(""))
}


def kind_of(child: Object) -> Kind:
    """The kind of a child, in the version that it was rendered for."""
    group, _, version = child["apiVersion"].rpartition("/")
    return replace(_CHILDREN[group, child["kind"]], version=version)
