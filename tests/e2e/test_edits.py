"""Edits of a job that trains: nothing leaves for one that can't be, another restarts it from where it is."""

import json

import pytest

from e2e.kube import JOB_LABEL, Kube, Object, condition, message, progress, reason
from e2e.manifests import example
from e2e.user_code import CONFIG_MAP, ENV, config_map

pytestmark = pytest.mark.cluster


def test_a_job_restarts_with_its_edit_from_a_checkpoint_and_leaves_as_little_as_it_is_told(kube: Kube) -> None:
    name = "edited"
    # Checkpoints by the clock come too seldom: the one that it goes on from is saved because of the edit.
    manifest = example("cartpole-dqn", name, checkpoint__everySeconds=3600, updateStrategy="Restart")
    manifest["spec"]["env"] = {"id": ENV}
    manifest["spec"]["code"] = {"configMap": {"name": CONFIG_MAP}}
    manifest["spec"]["stop"] = {"envSteps": 100_000}
    kube.apply(config_map(), manifest)
    kube.wait_steps(name, 500, 180)
    head = kube.pods(name, "head")[0]["metadata"]["uid"]

    edit(kube, name, {"head": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}})
    kube.wait("it is told", lambda: reason(kube.job(name), "Accepted") == "InvalidTemplate", 30)
    edit(kube, name, {"head": {"resources": None}, "runPolicy": {"maxRestarts": 7}})
    kube.wait("it is mended", lambda: reason(kube.job(name), "Accepted") == "Accepted", 30)
    kube.wait("another limit", lambda: kube.select("jobs", **{JOB_LABEL: name})[0]["spec"]["backoffLimit"] == 7, 30)
    assert [pod["metadata"]["uid"] for pod in kube.pods(name, "head")] == [head]

    trained = progress(kube.job(name))["envSteps"]
    edit(
        kube,
        name,
        {"stop": {"envSteps": trained + 1000}, "config": {"lr": 1e-3}, "runPolicy": {"cleanUp": {"onSuccess": "All"}}},
    )
    job = kube.wait_finished(name, 240)
    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["resumedFromSteps"] >= trained
    kube.wait("no pod is left", lambda: not kube.select("pods", **{JOB_LABEL: name}), 60)


def edit(kube: Kube, name: str, spec: Object) -> None:
    kube.kubectl("patch", "rltj", name, "--type", "merge", "-p", json.dumps({"spec": spec}))
