"""What the node's programs are told: their command lines and configuration files, as plain values."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .layout import (
    API_SERVER,
    AUDIT_LOG,
    CGROUP,
    DNS_ADDRESS,
    NODE,
    NODE_ADDRESS,
    POD_RANGE,
    REGISTRY,
    SERVICE_RANGE,
)

ETCD = "http://127.0.0.1:2379"
PAUSE_IMAGE = "localhost/rltrain-testbed/pause:1"
DNS_IMAGE = "localhost/rltrain-testbed/coredns:1"
PROBE_IMAGE = "localhost/rltrain-testbed/probe:1"
GANGS = "GenericWorkload=true,GangScheduling=true"
"""Feature gates of the scheduler's gangs; the API server keeps their PodGroups, the controller manager lets them go."""


def flags(**values: str | int | bool | Path) -> list[str]:
    """Command-line flags: max_pods=3 -> --max-pods=3."""
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return [f"--{name.replace('_', '-')}={text}" for name, text in texts.items()]


def control_plane(folder: Path) -> dict[str, list[str]]:
    """Program -> command line, in starting order; folder holds pki/ and the written files."""
    pki = folder / "pki"
    return {
        "etcd": [
            "etcd",
            *flags(
                data_dir=folder / "etcd",
                unsafe_no_fsync=True,  # it need not survive the machine
                listen_client_urls=ETCD,
                advertise_client_urls=ETCD,
                listen_peer_urls="http://127.0.0.1:2380",
            ),
        ],
        "kube-apiserver": [
            "kube-apiserver",
            *flags(
                etcd_servers=ETCD,
                bind_address=NODE_ADDRESS,
                advertise_address=NODE_ADDRESS,
                secure_port=6443,
                service_cluster_ip_range=SERVICE_RANGE,
                tls_cert_file=pki / "apiserver.crt",
                tls_private_key_file=pki / "apiserver.key",
                client_ca_file=pki / "ca.crt",
                kubelet_client_certificate=pki / "infrastructure.crt",
                kubelet_client_key=pki / "infrastructure.key",
                kubelet_certificate_authority=pki / "ca.crt",
                # The machine can't resolve the node's name.
                kubelet_preferred_address_types="InternalIP",
                service_account_issuer="https://kubernetes.default.svc.cluster.local",
                service_account_key_file=pki / "sa.pub",
                service_account_signing_key_file=pki / "sa.key",
                authorization_mode="Node,RBAC",
                enable_admission_plugins="NodeRestriction",
                allow_privileged=True,
                feature_gates=GANGS,
                runtime_config="scheduling.k8s.io/v1alpha2=true",
                audit_policy_file=folder / "audit.json",
                audit_log_path=AUDIT_LOG,
                audit_log_maxsize=1000,
            ),
        ],
        "kube-controller-manager": [
            "kube-controller-manager",
            *flags(
                kubeconfig=pki / "controller-manager.kubeconfig",
                bind_address="127.0.0.1",
                service_account_private_key_file=pki / "sa.key",
                root_ca_file=pki / "ca.crt",
                cluster_signing_cert_file=pki / "ca.crt",
                cluster_signing_key_file=pki / "ca.key",
                use_service_account_credentials=True,
                leader_elect=False,
                allocate_node_cidrs=True,  # kube-router asks the node for its range
                cluster_cidr=POD_RANGE,
                configure_cloud_routes=False,
                feature_gates=GANGS,
                kube_api_qps=200,
                kube_api_burst=400,
            ),
        ],
        "kube-scheduler": [
            "kube-scheduler",
            *flags(
                kubeconfig=pki / "scheduler.kubeconfig",
                bind_address="127.0.0.1",
                leader_elect=False,
                feature_gates=GANGS,
                kube_api_qps=200,
                kube_api_burst=400,
            ),
        ],
    }


def image_registry(folder: Path) -> dict[str, list[str]]:
    """Program -> command line of what keeps images."""
    return {"registry": ["registry", "serve", str(folder / "registry.json")]}


def runtime(folder: Path) -> dict[str, list[str]]:
    """Program -> command line of what must answer before the kubelet starts, or it gives up."""
    return {"containerd": ["containerd", "--config", str(folder / "containerd.toml")]}


def workers(folder: Path) -> dict[str, list[str]]:
    """Program -> command line of what runs pods and connects them."""
    pki = folder / "pki"
    return {
        "kubelet": [
            "kubelet",
            *flags(
                config=folder / "kubelet.json",
                kubeconfig=pki / "kubelet.kubeconfig",
                hostname_override=NODE,
                node_ip=NODE_ADDRESS,
            ),
        ],
        "kube-proxy": [
            "kube-proxy",
            *flags(
                kubeconfig=pki / "proxy.kubeconfig",
                hostname_override=NODE,
                proxy_mode="iptables",
                cluster_cidr=POD_RANGE,
                healthz_bind_address="127.0.0.1:10256",
                metrics_bind_address="127.0.0.1:10249",
                # The size of the table belongs to the machine; a network namespace may not set it.
                conntrack_max_per_core=0,
                conntrack_tcp_timeout_established="0s",
                conntrack_tcp_timeout_close_wait="0s",
                iptables_min_sync_period="0s",
            ),
        ],
    }


def policy_enforcer(folder: Path) -> list[str]:
    """kube-router's command line, for network policies alone; it wants a node that has a range of addresses."""
    return [
        "kube-router",
        *flags(
            kubeconfig=folder / "pki/infrastructure.kubeconfig",
            master=API_SERVER,
            hostname_override=NODE,
            run_firewall=True,
            run_router=False,
            run_service_proxy=False,
            run_loadbalancer=False,
            service_cluster_ip_range=SERVICE_RANGE,
            metrics_port=0,
            health_port=0,
        ),
    ]


def pretender(folder: Path) -> dict[str, list[str]]:
    """Program -> command line of what says that pods run which nobody runs."""
    return {
        "kwok": [
            "kwok",
            *flags(
                kubeconfig=folder / "pki/infrastructure.kubeconfig",
                config=folder / "stages.yaml",
                manage_all_nodes=True,
                node_lease_duration_seconds=40,
                node_ip=NODE_ADDRESS,
                cidr=POD_RANGE,
            ),
        ]
    }


def files(folder: Path, registry_data: Path) -> dict[str, str]:
    """Path below folder -> content of all configuration files."""
    return {
        "audit.json": json.dumps(audit_policy()),
        "kubelet.json": json.dumps(kubelet(folder)),
        "registry.json": json.dumps(registry(registry_data)),
        "containerd.toml": containerd(folder),
        "cni.d/10-testbed.conflist": json.dumps(pod_network()),
        f"certs.d/{REGISTRY}/hosts.toml": f'server = "http://{REGISTRY}"\n',
    }


def audit_policy() -> dict[str, Any]:
    """Who did what to which object; not the cluster's own comings and goings."""
    own = {
        "level": "None",
        "users": [
            "system:apiserver",
            "system:kube-controller-manager",
            "system:kube-scheduler",
            "system:kube-proxy",
            "testbed-infrastructure",
        ],
    }
    groups = {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [own, groups, {"level": "Metadata"}],
    }


def kubelet(folder: Path) -> dict[str, Any]:
    """The kubelet's configuration for either version of cgroups, with little disk and no systemd."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": str(folder / "pki/ca.crt")},
            "webhook": {"enabled": True},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(folder / "pki/kubelet.crt"),
        "tlsPrivateKeyFile": str(folder / "pki/kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_ADDRESS],
        "resolvConf": "/dev/null",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "maxPods": 200,
    }


def registry(data: Path) -> dict[str, Any]:
    """The image registry's configuration: plain HTTP inside the machine, images kept in data."""
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(data)}, "delete": {"enabled": True}},
        "http": {"addr": REGISTRY},
    }


def pod_network() -> dict[str, Any]:
    """The bridge that pods are plugged into."""
    ipam: dict[str, Any] = {
        "type": "host-local",
        "ranges": [[{"subnet": "10.244.0.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
    portmap: Mapping[str, Any] = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "testbed", "plugins": [{**bridge, "ipMasq": True}, portmap]}


def containerd(folder: Path) -> str:
    """containerd's configuration."""
    return f"""\
version = 3
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[plugins."io.containerd.cri.v1.images"]
# An unpacked layer is never needed again in its packed form, and the trainer's image is large.
discard_unpacked_layers = true
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "{folder / "certs.d"}"

[plugins."io.containerd.cri.v1.runtime"]
# Without CAP_SYS_RESOURCE runc can't lower a score and dies.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "/usr/sbin/runc"
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{folder / "cni.d"}"
"""
