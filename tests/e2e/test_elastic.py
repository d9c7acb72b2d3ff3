"""Running jobs become larger and smaller: nobody starts over, and nothing counts as lost."""

import json
from typing import Any

import pytest

from e2e.kube import Kube, Object, condition, message, progress
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, HURRY, config_map

pytestmark = pytest.mark.cluster

APEX, RANKS, AUTO = "elastic-apex", "elastic-ranks", "elastic-auto"
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
    assert scale(kube, APEX)["status"]["replicas"] == 1

    kube.kubectl("scale", "rltj", APEX, "--replicas=2")
    kube.kubectl("patch", "rltj", RANKS, "--type", "merge", "-p", '{"spec": {"workers": {"replicas": 2}}}')
    follows(kube, APEX, 2)
    follows(kube, RANKS, 2)
    told = kube.wait(
        "the scale says so", lambda: found if (found := scale(kube, APEX)["status"])["replicas"] == 2 else None, 30
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


def test_a_job_whose_samples_are_short_gets_another_worker_by_itself_up_to_its_maximum(kube: Kube) -> None:
    often = {"RLTRAIN_PROGRESS_SECONDS": "1", "RLTRAIN_AUTOSCALE_SECONDS": "3"}
    env = [{"name": name, "value": value} for name, value in often.items()]
    manifest = example(
        "cartpole-dqn",
        AUTO,
        rollouts={"replicas": 1, "maxReplicas": 2, "autoscale": True},
        head__template={"spec": {"containers": [{"name": "rltrain", "env": env}]}},
        **SLOW | {"stop": {"envSteps": 15_000}},
    )
    # Next to nothing to learn from what takes so long to sample.
    few = {"rollout_fragment_length": 50, "training_intensity": 1, "learning_starts": 200}
    manifest["spec"]["config"] |= {**few, "timesteps_per_iteration": 100}
    kube.apply(config_map(), manifest)
    told = kube.wait("another worker", lambda: kube.told(AUTO, "Resized"), 240)
    assert told == "rollouts: from 1 to 2 pods, as suits the learner."
    (head,) = kube.pods(AUTO, "head")
    follows(kube, AUTO, 2)
    trains_on(kube, AUTO)
    assert progress(kube.job(AUTO))["rolloutsProposed"] == 2, "short as ever, but that is the most"
    assert scale(kube, AUTO)["status"]["replicas"] == 2

    for pod in kube.pods(AUTO, "rollouts"):
        kube.kubectl("exec", pod["metadata"]["name"], "--", "touch", HURRY)
    job = kube.wait_finished(AUTO, 120)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["attempt"] == 1
    assert [pod["metadata"]["uid"] for pod in kube.pods(AUTO, "head")] == [head["metadata"]["uid"]]


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


def scale(kube: Kube, name: str) -> Object:
    path = f"/apis/rltrain.dev/v1alpha1/namespaces/{kube.namespace}/rltrainingjobs/{name}/scale"
    found: Object = json.loads(kube.kubectl("get", "--raw", path))
    return found


def last_result(kube: Kube, name: str) -> Object:
    job = kube.job(name)
    head = kube.pods(name, "head")[0]["metadata"]["name"]
    path = f"/data/{job['metadata']['uid']}/results.jsonl"
    found: Object = json.loads(kube.kubectl("exec", head, "--", "tail", "-n", "1", path))
    return found
