"""Running jobs become larger and smaller: nobody starts over, and nothing counts as lost."""

import json
from typing import Any

import pytest

from e2e.kube import Kube, Object, progress
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, config_map

pytestmark = pytest.mark.cluster

APEX, RANKS = "elastic-apex", "elastic-ranks"
# At most 100 steps a second of each worker, so that the processors are the new pods'.
SLOW: dict[str, Any] = {
    "env": {"id": ENV, "kwargs": {"seconds": 0.01}},
    "code": {"configMap": {"name": CONFIG_MAP}},
    "stop": {"envSteps": 1_000_000},
}


def test_rollouts_are_scaled_and_ranks_edited_while_both_jobs_train(kube: Kube) -> None:
    few = {"config__learning_starts": 200, "config__timesteps_per_iteration": 200, "config__num_envs_per_worker": 4}
    kube.apply(
        config_map(),
        example("cartpole-apex", APEX, rollouts={"replicas": 1}, **few, **SLOW),
        example("cartpole-ddppo", RANKS, workers={"replicas": 1}, **SLOW),
    )
    kube.wait_steps(APEX, 300, 240)
    kube.wait_steps(RANKS, 500, 240)
    heads = {name: kube.pods(name, "head")[0]["metadata"]["uid"] for name in (APEX, RANKS)}
    assert scale(kube)["status"]["replicas"] == 1

    kube.kubectl("scale", "rltj", APEX, "--replicas=2")
    kube.kubectl("patch", "rltj", RANKS, "--type", "merge", "-p", '{"spec": {"workers": {"replicas": 2}}}')
    follows(kube, APEX, 2)
    follows(kube, RANKS, 2)
    told = kube.wait(
        "the scale says so", lambda: found if (found := scale(kube)["status"])["replicas"] == 2 else None, 30
    )
    assert len(kube.kubectl("get", "pods", "-o", "name", "-l", told["selector"]).split()) == 2
    trains_on(kube, APEX)
    trains_on(kube, RANKS)

    kube.kubectl("scale", "rltj", APEX, "--replicas=1")
    follows(kube, APEX, 1)
    kube.wait("the second pod leaves", lambda: len(kube.pods(APEX, "rollouts")) == 1, 60)
    (left,) = kube.pods(APEX, "rollouts")
    assert left["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0"
    trains_on(kube, APEX)

    for name, uid in heads.items():
        (head,) = kube.pods(name, "head")
        assert head["metadata"]["uid"] == uid
        counters = last_result(kube, name)["counters"].items()
        assert not {key: count for key, count in counters if count and ("lost" in key or "failures" in key)}
    exploring = last_result(kube, APEX)["info"]["exploration_infos"]
    assert [each["epsilon"] for each in exploring] == [0.0, 0.4]


def follows(kube: Kube, name: str, wanted: int) -> None:
    """Wait until the driver trains with so many workers.

    The kubelet brings an edited ConfigMap into a pod within a minute or so, and at once where the pod has changed too.
    """

    def there() -> bool:
        head = kube.pods(name, "head")[0]["metadata"]
        kube.kubectl("annotate", "pod", head["name"], f"e2e/looked-at={head['resourceVersion']}", "--overwrite")
        now = progress(kube.job(name))
        return (now["workersWanted"], now["workersHealthy"]) == (wanted, wanted)

    kube.wait(f"{name} with {wanted} workers", there, 120)


def trains_on(kube: Kube, name: str) -> None:
    kube.wait_steps(name, progress(kube.job(name))["envSteps"] + 1000, 120)


def scale(kube: Kube) -> Object:
    path = f"/apis/rltrain.dev/v1alpha1/namespaces/{kube.namespace}/rltrainingjobs/{APEX}/scale"
    found: Object = json.loads(kube.kubectl("get", "--raw", path))
    return found


def last_result(kube: Kube, name: str) -> Object:
    job = kube.job(name)
    head = kube.pods(name, "head")[0]["metadata"]["name"]
    path = f"/data/{job['metadata']['uid']}/results.jsonl"
    found: Object = json.loads(kube.kubectl("exec", head, "--", "tail", "-n", "1", path))
    return found
