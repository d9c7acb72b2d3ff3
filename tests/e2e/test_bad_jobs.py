"""What can't work ends in a condition that names the cause, and the operator stays well."""

import json
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from e2e.cli import rltrain, starting, written
from e2e.installation import Images, Operator
from e2e.kube import Kube, Object, condition, message, reason
from e2e.manifests import example
from e2e.standin import standin
from testbed.cluster import choose
from testbed.images import retagged

pytestmark = pytest.mark.cluster

NOWHERE = "localhost:1/no/such:image"
ONE_TRY = {"maxRestarts": 0}


@pytest.fixture(scope="module", autouse=True)
def operator_stays_well(operator: Operator) -> Iterator[None]:
    before = operator.restarts()
    yield
    assert operator.restarts() == before
    assert all(pod["status"]["phase"] == "Running" for pod in operator.pods())


@pytest.fixture(scope="module")
def late_image(images: Images) -> str:
    """A reference that nothing has, until a test publishes it."""
    return retagged(images.operator, f"late-{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="module", autouse=True)
def jobs(
    shared: Kube, images: Images, late_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["subprocess.Popen[str]"]:
    """All that take their time to fail, at once; `rltrain submit --wait` of the one without an environment."""
    folder = tmp_path_factory.mktemp("jobs")
    too_big = standin("too-big", images.operator, runPolicy={"startupDeadlineSeconds": 30})
    too_big["spec"]["head"]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    silent = standin("dies", images.operator, runPolicy=ONE_TRY)
    silent["spec"]["head"]["template"]["spec"]["containers"][0]["command"] = ["python", "-c", "import no_such_module"]
    nan = json.dumps({"reason": "EnvironmentFailed", "message": "reward is NaN at step 7"})
    shared.apply(
        standin("no-image", NOWHERE, runPolicy={"startupDeadlineSeconds": 45}),
        standin("late-image", late_image),
        too_big,
        silent,
        standin("nan", images.operator, life=0, exit_code=1, words=nan, runPolicy=ONE_TRY),
        example("cartpole-dqn", "small-buffer", config__buffer_size=10),
    )
    manifest = written(folder, example("cartpole-dqn", "no-env", env={"id": "CartPool-v1"}))
    with starting("submit", manifest, "-n", shared.namespace, "--wait") as submission:
        yield submission


@pytest.fixture(scope="module", autouse=True)
def watched(shared: Kube, jobs: object) -> Iterator["subprocess.Popen[str]"]:
    """`rltrain status --watch` of the job without an image."""
    with starting("status", "no-image", "-n", shared.namespace, "--watch") as watcher:
        yield watcher


def test_image_that_does_not_exist_is_told_within_30_s(shared: Kube) -> None:
    job = _because(shared, "no-image", "ImagePullFailed")

    assert NOWHERE in message(job, "ClusterReady")


def test_what_keeps_a_job_waiting_is_told_by_every_command(shared: Kube) -> None:
    here = ("-n", shared.namespace)

    assert NOWHERE in rltrain("status", "no-image", *here).stdout.splitlines()[1]
    at_once = rltrain("logs", "no-image", *here)
    assert at_once.stdout == ""
    assert NOWHERE in at_once.stderr


def test_request_that_no_node_can_hold_is_told_with_the_schedulers_words(shared: Kube) -> None:
    job = _because(shared, "too-big", "Unschedulable")

    assert "nvidia.com/gpu" in message(job, "ClusterReady")


def test_job_heals_by_itself_when_its_image_appears(shared: Kube, images: Images, late_image: str) -> None:
    job = _because(shared, "late-image", "ImagePullFailed")
    assert late_image in message(job, "ClusterReady")

    choose().publish(images.operator, late_image.rpartition(":")[2])

    # The kubelet's own back-off lies between its tries.
    shared.wait("ClusterReady", lambda: condition(shared.job("late-image"), "ClusterReady") == "True", 180)


@pytest.mark.parametrize(("name", "words"), [("no-image", NOWHERE), ("too-big", "nvidia.com/gpu")])
def test_startup_deadline_ends_what_waits_in_vain_and_keeps_the_cause(shared: Kube, name: str, words: str) -> None:
    job = shared.wait_finished(name, timeout=60)

    assert reason(job, "Failed") == "StartupDeadlineExceeded"
    assert words in message(job, "Failed")
    shared.wait("no pod is left", lambda: not shared.pods(name), 60)


def test_watched_status_tells_each_change_once_and_ends_with_the_jobs_failure(
    watched: "subprocess.Popen[str]",
) -> None:
    ended = watched.communicate(timeout=60)[0]

    assert watched.returncode == 1
    assert "Failed=True StartupDeadlineExceeded" in ended
    told = [line.partition("  ")[2] for line in ended.splitlines()]
    assert len(told) == len(set(told)), "a line that says nothing new"


def test_misspelt_key_is_refused_by_kubectl_apply(shared: Kube) -> None:
    manifest = example("cartpole-dqn", "typo", config__learning_rate=0.1)

    done = shared.run("apply", "--validate=strict", "-f", "-", stdin=json.dumps(manifest))

    assert done.returncode != 0
    assert "learning_rate" in done.stderr
    assert shared.get("rltj", "typo") is None


def test_what_only_the_models_can_see_ends_in_accepted_false(shared: Kube) -> None:
    job = shared.wait_finished("small-buffer", timeout=30)

    assert (condition(job, "Accepted"), condition(job, "Failed")) == ("False", "True")
    assert "buffer_size" in message(job, "Accepted")
    assert shared.pods("small-buffer") == []


def test_environment_that_does_not_exist_fails_the_job_by_name(shared: Kube, jobs: "subprocess.Popen[str]") -> None:
    job = shared.wait_finished("no-env", timeout=180)

    assert (condition(job, "Failed"), reason(job, "Failed")) == ("True", "UnknownEnvironment")
    assert "CartPool-v1" in message(job, "Failed")
    assert "CartPole-v1" in message(job, "Failed")

    story = jobs.communicate(timeout=30)[0]
    assert jobs.returncode == 1, "the job's failure is its submission's"
    assert "Failed=True UnknownEnvironment" in story
    assert "CartPool-v1" in rltrain("status", "no-env", "-n", shared.namespace).stdout


def test_process_that_dies_without_a_word_leaves_its_last_lines(shared: Kube) -> None:
    found = shared.wait_finished("dies", 90)

    assert reason(found, "Failed") == "RestartsExhausted"
    assert "No module named 'no_such_module'" in message(found, "Failed")


def test_cause_of_a_failure_survives_its_pods(shared: Kube) -> None:
    shared.wait_finished("nan", 90)

    shared.delete("job", "nan-head")
    shared.wait("its pods are gone", lambda: not shared.pods("nan"), 60)

    job = shared.job("nan")
    assert reason(job, "Failed") == "EnvironmentFailed"
    assert "reward is NaN at step 7" in message(job, "Failed")
    assert shared.get("job", "nan-head") is None, "finished is final: it isn't made again"


def _because(kube: Kube, name: str, why: str) -> Object:
    """The job, once its cluster isn't ready because of this; within the 30 s in which a user must be told."""

    def told() -> Object | None:
        job = kube.job(name)
        return job if reason(job, "ClusterReady") == why else None

    return kube.wait(f"{name} is {why}", told, 30)
