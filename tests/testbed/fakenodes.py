"""A control plane whose nodes only pretend: pods by the thousand that cost no more than their objects."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from . import configs, node, onenode, parts, pki
from .cluster import link_programs
from .layout import BIN, KUBECONFIG, LOGS
from .onenode import FILES, OneNode, apply, healthy, kubectl, logs, start
from .shell import TestbedError, step, wait_until

FAIL_LABEL: Final = "testbed/fail"
"""A pod that is given this label fails, with exit code 1."""
PODS_EACH: Final = 2000
_PARTS: Final = (parts.NODE_PARTS[0], parts.NODE_PARTS[1], parts.KWOK, parts.TINY)


class FakeNodes:
    """The same programs as the one node's control plane, at the same addresses, and kwok in the kubelet's stead.

    Args:
        nodes: how many nodes there are, each with room for `PODS_EACH` pods.
        users: further users with all rights, each with a kubeconfig (`kubeconfig`) of its own.
    """

    def __init__(self, nodes: int, users: tuple[str, ...] = ()) -> None:
        self._nodes = nodes
        self._users = users

    def up(self) -> node.Node:
        """Bring it up in place of any cluster there is on this machine."""
        if os.geteuid() != 0:
            raise TestbedError("fake nodes need root, for their network")
        programs = parts.build_all(_PARTS)
        OneNode().down()
        with step("fake nodes"):
            link_programs(BIN, programs)
            LOGS.mkdir(parents=True)
            machine = node.create(programs["pause"].resolve())
            admins = {name: (f"/O=system:masters/CN={name}", f"DNS:{name}") for name in self._users}
            pki.make(FILES / "pki", pki.CERTIFICATES | admins)
            (FILES / "audit.json").write_text(json.dumps(configs.audit_policy()))
            (FILES / "stages.yaml").write_text("\n---\n".join(map(json.dumps, (_PACE, *stages()))))
            start(machine, configs.control_plane(FILES))
            pki.write_kubeconfig(FILES / "pki", "admin", KUBECONFIG)
            wait_until("the API server", healthy, 120, lambda: logs("etcd", "kube-apiserver"))
            start(machine, configs.pretender(FILES))
            apply(*(fake_node(f"fake-{index}") for index in range(self._nodes)))
            wait_until("the nodes", self._ready, 60, lambda: logs("kwok"))
        return machine

    def down(self) -> None:
        """End all of it."""
        OneNode().down()

    def _ready(self) -> bool:
        output = '--output=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}'
        return kubectl("get", "nodes", output, check=False).split() == ["True"] * self._nodes


def kubeconfig(user: str) -> str:
    """Path of a user's kubeconfig."""
    return str(onenode.FILES / "pki" / f"{user}.kubeconfig")


def fake_node(name: str) -> dict[str, Any]:
    """A node for kwok to look after."""
    room = {"cpu": "1000", "memory": "4Ti", "pods": str(PODS_EACH)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "type": "kwok"}},
        "status": {"allocatable": room, "capacity": room},
    }


def stages() -> tuple[dict[str, Any], ...]:
    """What becomes of a pod: it runs, and goes on running, for kwok's own stages end a Job's pods at once."""
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    running = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    unstarted = {"key": ".status.podIP", "operator": "DoesNotExist"}
    chosen = {"key": f'.metadata.labels["{FAIL_LABEL}"]', "operator": "Exists"}
    deleted = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
    return (
        _stage("pod-runs", [alive, unstarted], {"statusTemplate": _RUNNING}),
        _stage("pod-fails", [alive, running, chosen], {"statusTemplate": _FAILED}),
        _stage("pod-goes", [deleted], {"delete": True}),
    )


def _stage(name: str, when: list[dict[str, Any]], then: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": when},
            "next": dict(then),
        },
    }


_PACE: Final = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {"podPlayStageParallelism": 16},
}
"""With four at a time kwok falls behind a busy API server, which ends its watch then: all pods come anew each time."""
_RUNNING: Final = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
{{ range $type := list "Initialized" "Ready" "ContainersReady" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
"""
_FAILED: Final = """
{{ $now := Now }}
phase: Failed
conditions:
{{ range $type := list "Ready" "ContainersReady" }}
- {type: {{ $type }}, status: "False", reason: PodFailed, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state: {terminated: {exitCode: 1, reason: Error, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
"""
