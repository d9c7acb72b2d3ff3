"""Those plans that no other file runs, each as an example has it in pods, from `kubectl apply` to its end."""

import pytest

from e2e.kube import ROOT, Kube, Object, condition, message, progress
from e2e.manifests import example

pytestmark = pytest.mark.cluster

DATASET = "pendulum-sac.npz"
_FAST = {
    "config__timesteps_per_iteration": 100,
    "config__min_time_s_per_reporting": 0,
    "config__learning_starts": 200,
    "checkpoint__everySeconds": 5,
}


def _jobs() -> dict[str, Object]:
    classic = example(
        "cartpole-apex",
        "classic",
        plan="ApexClassic",
        **_FAST,
        rollouts={"replicas": 1},
        stop={"envSteps": 4000},
    )
    del classic["spec"]["config"]["training_intensity"]  # it always runs free
    return {
        "classic": classic,
        "sac": example("pendulum-sac", "sac", **_FAST, rollouts={"replicas": 1}, stop={"envSteps": 300}),
        "r2d2": example("cartpole-r2d2", "r2d2", **_FAST, rollouts={"replicas": 1}, stop={"envSteps": 800}),
        "several": example("meeting-dqn", "several", rollouts={"replicas": 1}, stop={"envSteps": 1000}),
        "own": example("own-plan/cartpole", "own", stop={"envSteps": 2000}),
        "cql": example(
            "pendulum-cql",
            "cql",
            config__input=DATASET,
            config__timesteps_per_iteration=25600,
            code={"configMap": {"name": "dataset"}},
            stop={"trainedSteps": 102400},
        ),
    }


@pytest.fixture(scope="module")
def finished(shared: Kube) -> dict[str, Object]:
    """All of them, which ran side by side."""
    for name, file in {"dataset": f"data/{DATASET}", "my-plans": "own-plan/my_plans.py"}.items():
        shared.kubectl("create", "configmap", name, f"--from-file={ROOT}/examples/{file}")
    jobs = _jobs()
    shared.apply(*jobs.values())
    return {name: shared.wait_finished(name, timeout=600) for name in jobs}


@pytest.mark.parametrize("name", _jobs())
def test_succeeds_with_updates_and_a_checkpoint(finished: dict[str, Object], name: str) -> None:
    job = finished[name]

    assert condition(job, "Succeeded") == "True", message(job, "Failed")
    assert progress(job)["trainedSteps"] > 0
    assert job["status"]["checkpoint"]["envSteps"] == progress(job)["envSteps"]


def test_cql_samples_nothing_and_still_tells_how_it_plays(finished: dict[str, Object]) -> None:
    told = progress(finished["cql"])

    assert told["envSteps"] == 0
    assert told["trainedSteps"] == 102400
    assert told["evaluationReturnMean"] < 0
