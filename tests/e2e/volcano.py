"""Volcano's scheduler as its own chart installs it, from its Go module, for pods that name it."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.installation import helm
from e2e.kube import Kube
from testbed import parts
from testbed.cluster import choose

NAMESPACE: Final = "volcano-system"
RELEASE: Final = "volcano"
_REGISTRY, _IMAGE, _TAG = "localhost", "rltrain-testbed/volcano", "1"

_LOCAL = "kubernetes.io/no-provisioner"
"""Provisioner of the test cluster's volumes: Volcano would count them as attached, for which a node has a limit."""

_PLUGINS = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: nodeorder
"""
"""What is left out shares the cluster between queues, which Volcano's controllers would have to open first."""


@contextmanager
def installed() -> Iterator[None]:
    """A cluster with Volcano's kinds and its scheduler."""
    choose().load(parts.build(parts.VOLCANO) / "vc-scheduler", f"{_REGISTRY}/{_IMAGE}:{_TAG}")
    chart = parts.module(parts.VOLCANO, parts.VOLCANO_MODULE) / "installer/helm/chart/volcano"
    image = {"image_registry": _REGISTRY, "scheduler_image_name": _IMAGE, "image_tag_version": _TAG}
    # The chart's own values ask for SELinux and a capability, which a machine may not have.
    plain = {"default_sc": {"seLinuxOptions": None}, "default_csc": {"capabilities": {"add": None}}}
    values = {
        "basic": {**image, "image_pull_policy": "Never"},
        "custom": {
            "admission_enable": False,
            "controller_enable": False,
            "scheduler_config_override": _PLUGINS.strip(),
            "ignored_provisioners": _LOCAL,
            **plain,
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.json"
        file.write_text(json.dumps(values))
        try:
            helm(
                *("install", RELEASE, str(chart), "--namespace", NAMESPACE, "--create-namespace"),
                *("--values", str(file)),
            )
            Kube(NAMESPACE).kubectl("rollout", "status", f"deployment/{RELEASE}-scheduler", "--timeout=120s")
            yield
        finally:
            helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
