"""The objects that a bare cluster lacks: DNS, a storage class, volumes."""

from pathlib import Path
from typing import Any

from .configs import DNS_IMAGE
from .layout import DNS_ADDRESS, NODE

COREFILE = """\
.:53 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    ttl 5
  }
}
"""
VOLUME_COUNT = 64
"""More than the cluster tests have jobs: each volume is claimed once."""
STORAGE_CLASS = "standard"


def dns() -> list[dict[str, Any]]:
    """CoreDNS as other clusters have it: a Deployment behind the Service kube-dns."""
    name, labels = {"name": "coredns", "namespace": "kube-system"}, {"k8s-app": "kube-dns"}
    readable = [
        {"apiGroups": [""], "resources": ["services", "namespaces", "pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    container = {
        "name": "coredns",
        "image": DNS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"containerPort": 53, "protocol": protocol} for protocol in ("UDP", "TCP")],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    ports = [{"name": f"dns-{p.lower()}", "port": 53, "protocol": p} for p in ("UDP", "TCP")]
    subject = {"kind": "ServiceAccount", **name}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "testbed:coredns"},
            "rules": readable,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "testbed:coredns"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "testbed:coredns"},
            "subjects": [subject],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"Corefile": COREFILE}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": name,
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
            "spec": {"clusterIP": DNS_ADDRESS, "selector": labels, "ports": ports},
        },
    ]


def storage_class() -> dict[str, Any]:
    """The default class; nothing provisions its volumes, they are there beforehand."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_names() -> list[str]:
    """The names of the volumes and of their folders."""
    return [f"volume-{index:02}" for index in range(VOLUME_COUNT)]


def volume(name: str, folder: Path) -> dict[str, Any]:
    """A persistent volume in a folder of the node."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            # Unlike hostPath, this kind lets a pod's fsGroup own the folder.
            "local": {"path": str(folder / name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }
