"""Namespaces for tests: made anew for each, ended beside the tests that follow."""

import uuid

from e2e.kube import Kube

GONE_SECONDS = 180


class Namespaces:
    """Those of one session.

    Attributes:
        open: in use by the running test or its file.
    """

    def __init__(self) -> None:
        self.open: list[Kube] = []
        self._ending: list[str] = []

    def make(self) -> Kube:
        """A fresh one that admits only `restricted` pods."""
        kube = Kube(f"e2e-{uuid.uuid4().hex[:8]}")
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kube.namespace, "labels": labels}})
        self.open.append(kube)
        return kube

    def end(self, kube: Kube) -> None:
        """Begin to delete it with all that is in it."""
        self.open.remove(kube)
        self._ending.append(kube.namespace)
        # Jobs first: with their pods still there, the namespace's end comes in several rounds of ever longer waits.
        kube.kubectl("delete", "rltj", "--all", "--wait=false")
        kube.kubectl("delete", "namespace", kube.namespace, "--wait=false", "--ignore-not-found")

    def wait_gone(self) -> None:
        """Wait until nothing is left of those that have ended. Raises AssertionError when something holds one."""
        if self._ending:
            kube = Kube("default")
            names = [f"namespace/{name}" for name in self._ending]
            kube.kubectl("wait", "--for=delete", *names, f"--timeout={GONE_SECONDS}s")
