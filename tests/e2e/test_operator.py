"""What the operator promises of any job, seen on jobs that only pretend to train."""

import json
from collections.abc import Iterator

import pytest

from e2e.installation import Images, Operator
from e2e.kube import Kube, Object, condition, message, reason
from e2e.namespaces import Namespaces
from e2e.standin import standin

pytestmark = pytest.mark.cluster

KINDS = "jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies,persistentvolumeclaims"
LONGEST = "n" * 40


@pytest.fixture(scope="module", autouse=True)
def doomed(shared: Kube, images: Images) -> Kube:
    """A namespace that is deleted, with a running job in it, beside the other tests of this file."""
    shared.apply(standin("inside", images.operator))
    ready(shared, "inside")
    shared.kubectl("delete", "namespace", shared.namespace, "--wait=false")
    return shared


@pytest.fixture(scope="module", autouse=True)
def jobs(namespaces: Namespaces, images: Images) -> Iterator[Kube]:
    """A namespace with all those that tests only have to look at or to meddle with, applied at once."""
    made = namespaces.make()
    host, odd = standin("host", images.operator), standin("odd", images.operator)
    host["spec"]["head"]["template"]["spec"]["hostNetwork"] = True
    odd["spec"]["rollouts"]["template"]["spec"]["nodeSelectorr"] = {"disk": "ssd"}
    made.apply(
        standin(LONGEST, images.operator),
        standin("short", images.operator, life=1),
        host,
        odd,
        standin("fixed", images.operator),
        standin("lost", images.operator),
        standin("told", images.operator, life=3),
    )
    yield made
    namespaces.end(made)


def because(kube: Kube, name: str, kind: str, *reasons: str) -> Object:
    """The job, once a condition has one of these reasons."""

    def probe() -> Object | None:
        job = kube.job(name)
        return job if reason(job, kind) in reasons else None

    return kube.wait(f"{kind} because of {' or '.join(reasons)}", probe, 30)


def ready(kube: Kube, name: str) -> Object:
    def probe() -> Object | None:
        job = kube.job(name)
        return job if condition(job, "ClusterReady") == "True" else None

    return kube.wait("ClusterReady", probe, 60)


def children(kube: Kube, name: str) -> dict[str, str]:
    """Resource version of each child."""
    items = json.loads(kube.kubectl("get", KINDS, "-l", f"rltrain.dev/job={name}", "-o", "json"))["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}


def test_longest_legal_name_works_and_longer_or_dotted_ones_are_refused_with_the_rule(
    jobs: Kube, images: Images
) -> None:
    for name in ("x" * 41, "y" * 63, "z" * 78, "a.b", "1a"):
        done = jobs.run("apply", "-f", "-", stdin=json.dumps(standin(name, images.operator)))
        assert done.returncode != 0, name
        assert "name" in done.stderr
        assert "40" in done.stderr or "letter" in done.stderr or "lower" in done.stderr, done.stderr

    ready(jobs, LONGEST)
    names = [*children(jobs, LONGEST), *(f"Pod/{pod['metadata']['name']}" for pod in jobs.pods(LONGEST))]
    assert len(names) == len(set(names))
    assert max(len(name.partition("/")[2]) for name in names) <= 63


def test_success_carries_the_heads_words_and_removes_the_rest(jobs: Kube) -> None:
    job = jobs.wait_finished("short", 90)

    assert (condition(job, "Succeeded"), reason(job, "Succeeded")) == ("True", "StopCriterionReached")
    assert "env_steps" in message(job, "Succeeded")
    assert job["status"]["state"] == "Succeeded"
    jobs.wait("the other role is gone", lambda: not jobs.get("job", "short-rollouts"), 30)
    assert jobs.get("job", "short-head") is not None, "kept for its logs"


def test_pod_that_the_namespace_does_not_admit_is_told_with_the_rule(jobs: Kube) -> None:
    found = because(jobs, "host", "ClusterReady", "PodSecurityViolated")

    assert "hostNetwork" in message(found, "ClusterReady")


def test_used_up_quota_is_told_and_heals_when_there_is_room(kube: Kube, images: Images) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "1"}},
    }
    kube.apply(quota)
    kube.wait("the quota counts", lambda: kube.get("resourcequota", "small")["status"].get("used"), 30)  # type: ignore[index]
    kube.apply(standin("much", images.operator))

    found = because(kube, "much", "ClusterReady", "QuotaExceeded")
    assert "exceeded quota: small" in message(found, "ClusterReady")

    kube.apply({**quota, "spec": {"hard": {"pods": "5"}}})
    ready(kube, "much")


def test_missing_code_is_told_and_heals_when_it_appears(kube: Kube, images: Images) -> None:
    kube.apply(standin("coded", images.operator, code={"configMap": {"name": "my-envs"}}))

    found = because(kube, "coded", "ClusterReady", "PodSetupFailed")
    assert 'configmap "my-envs" not found' in message(found, "ClusterReady")

    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "my-envs"}, "data": {"a.py": ""}})
    kube.wait("ClusterReady", lambda: condition(kube.job("coded"), "ClusterReady") == "True", 150)


def test_template_that_is_no_pod_leaves_no_half_job_and_can_be_mended(jobs: Kube, images: Images) -> None:
    found = because(jobs, "odd", "Accepted", "InvalidTemplate")
    assert "nodeSelectorr" in message(found, "Accepted")
    assert children(jobs, "odd") == {}

    jobs.kubectl("replace", "-f", "-", stdin=json.dumps(standin("odd", images.operator)))
    ready(jobs, "odd")


def test_edit_of_a_job_that_does_not_train_yet_is_carried_out_at_once(jobs: Kube) -> None:
    ready(jobs, "fixed")
    before = {pod["metadata"]["uid"] for pod in jobs.pods("fixed")}

    jobs.kubectl("patch", "rltj", "fixed", "--type=merge", "-p", '{"spec": {"seed": 5, "rollouts": {"replicas": 2}}}')

    jobs.wait("new pods", lambda: len(jobs.pods("fixed", "rollouts")) == 2, 60)
    ready(jobs, "fixed")
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in jobs.pods("fixed"))


def test_restarted_operator_writes_nothing_where_all_is_as_it_should_be_not_even_a_token(
    kube: Kube, operator: Operator, images: Images
) -> None:
    names = ("one", "two")
    kube.apply(*(standin(name, images.operator) for name in names))

    def token(name: str) -> str:
        secret = kube.get("secret", f"{name}-token")
        assert secret is not None
        return str(secret["data"]["token"])

    def state() -> dict[str, object]:
        return {
            name: (token(name), children(kube, name), kube.job(name)["metadata"]["resourceVersion"]) for name in names
        }

    for name in names:
        ready(kube, name)
    before, tokens = state(), {name: token(name) for name in names}
    assert len(set(tokens.values())) == 2, "each job has its own"

    operator.scale(0)
    operator.scale(1)
    # Its visit to a job that is made now comes after those to the jobs that were there.
    kube.apply(standin("later", images.operator, life=1))
    kube.wait_finished("later", 90)

    assert state() == before
    for name in names:
        kube.kubectl("annotate", "rltj", name, "touch=me")
        assert token(name) == tokens[name]
        assert tokens[name] not in operator.logs()
        assert tokens[name] not in json.dumps(kube.job(name))


def test_lost_child_is_made_again(jobs: Kube) -> None:
    ready(jobs, "lost")
    uid = jobs.get("job", "lost-rollouts")["metadata"]["uid"]  # type: ignore[index]

    jobs.delete("job", "lost-rollouts")

    def again() -> bool:
        found = jobs.get("job", "lost-rollouts")
        return found is not None and found["metadata"]["uid"] != uid

    jobs.wait("the Job is there again", again, 30)


def test_events_tell_the_story_without_repetition(jobs: Kube) -> None:
    jobs.wait_finished("told", 90)

    def reasons() -> list[str]:
        events = json.loads(jobs.kubectl("get", "events", "-o", "json"))["items"]
        of_it = {"kind": "RLTrainingJob", "name": "told"}.items()
        return [event["reason"] for event in events if of_it <= event["involvedObject"].items()]

    jobs.wait("the last event", lambda: "StopCriterionReached" in reasons(), 20)
    assert sorted(reasons()) == sorted(set(reasons()))
    assert {"PodsReady", "StopCriterionReached"} <= set(reasons())


def test_deleting_a_job_while_its_head_is_being_made_leaves_only_its_volume(kube: Kube, images: Images) -> None:
    kube.apply(standin("brief", images.operator))
    kube.delete("rltj", "brief")

    kube.wait(
        "only the claim is left",
        lambda: set(children(kube, "brief")) <= {"PersistentVolumeClaim/brief-checkpoints"} and not kube.pods("brief"),
        90,
    )


def test_namespace_with_a_running_job_can_be_deleted(doomed: Kube) -> None:
    doomed.wait_gone("namespace", doomed.namespace, 120)
