"""Three jobs that train while things go wrong, and what can be seen of them."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from e2e.installation import Images, Operator
from e2e.kube import JOB_LABEL, ROLE_LABEL, Kube, Object, condition, progress
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, config_map
from testbed import manifests, node, onenode
from testbed.shell import TestbedError

T = TypeVar("T")

APEX, RANKS, DQN = "apex", "ranks", "dqn"
JOBS = (APEX, RANKS, DQN)
CHECKPOINT_SECONDS = 10
SMALL_VOLUME = "chaos-small"
SMALL_BYTES = 64 * 1024 * 1024
_PATIENCE = {"maxRestarts": 1000, "startupDeadlineSeconds": 900}


class Unhealed(Exception):
    """A job didn't recover in time."""


@dataclass(frozen=True)
class Scene:
    """The namespace with the jobs, the operator beside them and the machine below."""

    kube: Kube
    operator: Operator
    images: Images
    machine: node.Node

    def begin(self) -> None:
        """Make the jobs, and wait until all of them train and have a checkpoint."""
        self._make_small_volume()
        self.kube.apply(config_map(), *(_manifest(name) for name in JOBS))
        self.wait("all jobs train", self.whole, 600)
        self.wait("all have a checkpoint", lambda: all(self.saved(name) is not None for name in JOBS), 120)

    def end(self) -> dict[str, str]:
        """Let the jobs finish by an edit, which restarts them; each one's state then."""
        for name in JOBS:
            stop = {"stop": {"envSteps": self.steps(name) + 500}}
            self.kube.kubectl("patch", "rltj", name, "--type", "merge", "-p", json.dumps({"spec": stop}))
        return {name: str(self.kube.wait_finished(name, 600)["status"]["state"]) for name in JOBS}

    def whole(self) -> bool:
        """Every job trains with every pod that it should have, and with no other."""
        return all(self._is_whole(self.kube.job(name), name) for name in JOBS)

    def _is_whole(self, job: Object, name: str) -> bool:
        roles = job["status"].get("roles", [])
        wanted = {(role["name"], index) for role in roles for index in range(role["desired"])}
        now = progress(job)
        return (
            job["status"].get("state") == "Training"
            and condition(job, "ClusterReady") == "True"
            and now.get("workersHealthy") == now.get("workersWanted") != 0
            and sorted(place_of(pod) for pod in self.kube.pods(name) if lives(pod)) == sorted(wanted)
        )

    def steps(self, name: str) -> int:
        return int(progress(self.kube.job(name)).get("envSteps", 0))

    def saved(self, name: str) -> int | None:
        """Env steps in the newest checkpoint."""
        found = (self.kube.job(name)["status"].get("checkpoint") or {}).get("envSteps")
        return None if found is None else int(found)

    def pod(self, job: str, role: str) -> str:
        """The name of a pod of that role, once there is one."""
        pods = self.wait(f"a pod of {job}'s {role}", lambda: self.kube.pods(job, role), 120)
        return str(pods[-1]["metadata"]["name"])

    def lose(self, job: str, role: str) -> None:
        """A pod, without any grace."""
        self.kube.delete("pod", self.pod(job, role), "--wait=false", "--grace-period=0", "--force")

    def wait(self, what: str, probe: Callable[[], T | None], timeout: float) -> T:
        """As `Kube.wait`, over an API server that may be away."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                if found := probe():
                    return found
            except (AssertionError, KeyError, TestbedError):
                pass
            time.sleep(1.0)
        raise Unhealed(f"not within {timeout:.0f} s: {what}")

    def orphans(self) -> list[str]:
        """Objects of ours that belong to none of the jobs; claims outlive theirs."""
        kinds = "jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
        living = {self.kube.job(name)["metadata"]["uid"] for name in JOBS}
        found = json.loads(self.kube.kubectl("get", kinds, "-o", "json", "-l", JOB_LABEL))["items"]
        return [
            f"{each['kind']}/{each['metadata']['name']}"
            for each in found
            if each["metadata"]["labels"].get("rltrain.dev/job-uid") not in living
        ]

    def _make_small_volume(self) -> None:
        """A volume that can be filled up, and a claim to it."""
        folder = onenode.VOLUMES / SMALL_VOLUME
        folder.mkdir(parents=True, exist_ok=True)
        self.machine.run("mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES},mode=777", "tmpfs", folder)
        volume = manifests.volume(SMALL_VOLUME, onenode.VOLUMES)
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": SMALL_VOLUME},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": manifests.STORAGE_CLASS,
                "volumeName": SMALL_VOLUME,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        self.kube.apply(volume, claim)


def lives(pod: Object) -> bool:
    """A head's Job keeps its failed pods."""
    return pod["status"]["phase"] not in ("Failed", "Succeeded")


def place_of(pod: Object) -> tuple[str, int]:
    """Role and index."""
    labels = pod["metadata"]["labels"]
    return labels[ROLE_LABEL], int(labels["batch.kubernetes.io/job-completion-index"])


def _manifest(name: str) -> Object:
    """An example that trains for as long as it may, and leaves the machine to the others."""
    roles = {APEX: "cartpole-apex", RANKS: "cartpole-ddppo", DQN: "cartpole-dqn"}
    manifest = example(
        roles[name],
        name,
        env={"id": ENV, "kwargs": {"seconds": 0.01}},
        code={"configMap": {"name": CONFIG_MAP}},
        stop={"envSteps": 100_000_000},
        checkpoint={"everySeconds": CHECKPOINT_SECONDS},
        runPolicy=_PATIENCE,
        updateStrategy="Restart",
    )
    spec = manifest["spec"]
    if name == APEX:
        spec |= {"rollouts": {"replicas": 1}, "replay": {"replicas": 1}, "learners": {"replicas": 1}}
        spec["config"] |= {"learning_starts": 200, "timesteps_per_iteration": 100, "training_intensity": 1}
    elif name == DQN:
        spec["rollouts"] = {"replicas": 1}
        spec["config"] |= {"learning_starts": 200, "rollout_fragment_length": 50, "training_intensity": 1}
        spec["checkpoint"]["storage"] = {"claim": SMALL_VOLUME}
        spec["checkpoint"]["replay"] = False
    return manifest
