"""Kueue as its own chart installs it, from its Go module, and queues for tests."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.installation import helm
from e2e.kube import Kube, Object
from testbed import parts
from testbed.cluster import choose

NAMESPACE: Final = "kueue-system"
RELEASE: Final = "kueue"
GROUP: Final = "kueue.x-k8s.io"
MANAGED: Final = "kueue-managed"
"""Label of namespaces in which Kueue holds back all Jobs that no queue has admitted."""
_IMAGE: Final = "localhost/rltrain-testbed/kueue"


@contextmanager
def installed() -> Iterator[None]:
    """A cluster with Kueue, that manages Jobs without a queue's name too."""
    cluster = choose()
    cluster.load(parts.build(parts.KUEUE) / "manager", f"{_IMAGE}:1")
    chart = parts.module(parts.KUEUE, parts.KUEUE_MODULE) / "charts/kueue"
    manager = {
        "image": {"repository": _IMAGE, "tag": "1", "pullPolicy": "Never"},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    probe = {"initialDelaySeconds": 1, "periodSeconds": 1}
    gates = [{"name": "VisibilityOnDemand", "enabled": False}]
    values = {
        "controllerManager": {"manager": manager, "readinessProbe": probe, "featureGates": gates},
        "managerConfig": {"controllerManagerConfigYaml": json.dumps(configuration())},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.json"
        file.write_text(json.dumps(values))
        try:
            helm(
                *("install", RELEASE, str(chart), "--namespace", NAMESPACE, "--create-namespace"),
                *("--values", str(file)),
            )
            kube = Kube(NAMESPACE)
            # An extension of the API server, which wants more of a cluster; unanswered it would be in everybody's way.
            kube.kubectl(
                "delete", "apiservice", *(f"{version}.visibility.{GROUP}" for version in ("v1beta1", "v1beta2"))
            )
            kube.apply(*reads_our_jobs())
            secret = f"{RELEASE}-webhook-server-cert"
            kube.wait("Kueue's certificate", lambda: (kube.get("secret", secret) or {}).get("data"), 120)
            # The kubelet looks at what is mounted every minute or so, and at once where the pod itself changes.
            kube.kubectl("annotate", "pods", "--all", "rltrain.dev/look=now")
            kube.kubectl("rollout", "status", f"deployment/{RELEASE}-controller-manager", "--timeout=120s")
            yield
        finally:
            helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--ignore-not-found")


def reads_our_jobs() -> Iterator[Object]:
    """Kueue's right to see that a Job belongs to one of ours; see docs/operations.md."""
    api = "rbac.authorization.k8s.io"
    metadata = {"name": "kueue-reads-rltrainingjobs"}
    rule = {"apiGroups": ["rltrain.dev"], "resources": ["rltrainingjobs"], "verbs": ["get", "list", "watch"]}
    yield {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [rule]}
    yield {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", **metadata},
        "subjects": [{"kind": "ServiceAccount", "name": f"{RELEASE}-controller-manager", "namespace": NAMESPACE}],
    }


def configuration() -> Object:
    """Kueue's, as for a platform on which nothing runs beside its queues."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": False},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {MANAGED: "true"}},
        "integrations": {
            "frameworks": ["batch/job"],
            "externalFrameworks": ["RLTrainingJob.v1alpha1.rltrain.dev"],
        },
    }


@contextmanager
def queue(kube: Kube, name: str, cpu: str) -> Iterator[None]:
    """A queue of a namespace with so much of the cluster's processor time, in which the more urgent preempt others."""
    version = f"{GROUP}/v1beta2"
    everywhere = {"apiVersion": version, "metadata": {"name": kube.namespace}}
    flavor = {**everywhere, "kind": "ResourceFlavor", "spec": {"nodeLabels": {"kubernetes.io/os": "linux"}}}
    quota = {"name": kube.namespace, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    cluster_queue = {
        **everywhere,
        "kind": "ClusterQueue",
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        },
    }
    local = {
        "apiVersion": version,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": kube.namespace},
        "spec": {"clusterQueue": kube.namespace},
    }
    kube.apply(flavor, cluster_queue, local)
    try:
        yield
    finally:
        # Kueue's finalizers go only while it runs.
        kube.kubectl("delete", "rltj", "--all", "--timeout=60s")
        kube.wait("no Workload is left", lambda: not kube.kubectl("get", f"workloads.{GROUP}", "-o", "name"), 60)
        kube.kubectl("delete", f"localqueues.{GROUP}", name, "--timeout=60s")
        kube.kubectl("delete", f"clusterqueues.{GROUP}", kube.namespace, "--timeout=60s")
        kube.kubectl("delete", f"resourceflavors.{GROUP}", kube.namespace, "--timeout=60s")
