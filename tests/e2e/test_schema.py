"""The API server refuses what the schema and its rules can see, and reads the same values as `rltrain validate`."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.kube import ROOT, Kube
from rltrain.api import names, scalars
from rltrain.api.errors import InvalidManifest
from rltrain.api.load import load_text

pytestmark = pytest.mark.cluster

KUBE = Kube("default")


@pytest.fixture(scope="module", autouse=True)
def served_schema() -> Iterator[None]:
    """The CRD under test, left as it was found."""
    there = KUBE.get("crd", f"{names.PLURAL}.{names.GROUP}") is not None
    if not there:
        KUBE.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        KUBE.kubectl("wait", "--for=condition=Established", f"crd/{names.PLURAL}.{names.GROUP}", "--timeout=30s")
    yield
    if not there:
        KUBE.delete("crd", f"{names.PLURAL}.{names.GROUP}")


def manifest(*lines: str, plan: str = "DQN", name: str = "schema") -> str:
    given = {line.partition(":")[0] for line in lines}
    usual = {"env": "env: {id: CartPole-v1}", "stop": "stop: {envSteps: 1000}"}
    if plan == "DDPPO":
        usual["workers"] = "workers: {replicas: 2}"
    body = [f"plan: {plan}", *(line for key, line in usual.items() if key not in given), *lines]
    head = f"apiVersion: {names.API_VERSION}\nkind: {names.KIND}\nmetadata: {{name: {name}}}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in body)


def dry_run(text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return KUBE.run("apply", "--dry-run=server", "-o", "json", *flags, "-f", "-", stdin=text)


def refusal(text: str) -> str:
    """What the API server says; the models must refuse the same text."""
    with pytest.raises(InvalidManifest):
        load_text(text)
    done = dry_run(text)
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.parametrize(
    ("plan", "line", "words"),
    [
        ("DQN", "config: {learning_rate: 1e-4}", 'unknown field "spec.config.learning_rate"'),
        ("DQN", "stop: {env_steps: 5}", 'unknown field "spec.stop.env_steps"'),
        ("DQN", "config: {sgd_minibatch_size: 50}", "spec.config.sgd_minibatch_size belongs to plan"),
        ("DDPPO", "config: {double_q: true}", "spec.config.double_q belongs to plan"),
        ("DDPPO", "config: {train_batch_size: 400}", "spec.config.train_batch_size belongs to plan"),
        ("DDPPO", "rollouts: {replicas: 2}", "spec.rollouts belongs to plan"),
        ("DQN", "workers: {replicas: 2}", "spec.workers belongs to plan"),
        ("DDPPO", "workers: null", "plan DDPPO needs spec.workers"),
        ("DDPPO", "workers: {replicas: 1, minReplicas: 2}", "minReplicas must not exceed replicas"),
        ("DQN", "rollouts: {replicas: 1, minReplicas: 2}", "minReplicas must not exceed replicas"),
        ("DQN", "rollouts: {replicas: 3, maxReplicas: 2}", "maxReplicas must not be less than replicas"),
        ("DQN", "rollouts: {replicas: 3, autoscale: true}", "autoscale needs maxReplicas"),
        ("DDPPO", "config: {kl_coeff: 0.2}", "less than or equal to 0"),
        ("DQN", "config: {gamma: 2}", "less than or equal to 1"),
        ("DQN", "config: {lr: 0}", "greater than 0"),
        ("DQN", 'config: {lr: "1e-4"}', "must be of type number"),
        ("DQN", "config: {hiddens: [0]}", "spec.config.hiddens[0]"),
        ("DQN", "config: {noisy: 1}", "must be of type boolean"),
        ("DQN", "seed: 1.5", "must be of type integer"),
        ("DQN", "stop: {}", "give at least one of episodeReturnMean, evaluationReturnMean"),
        ("DQN", "code: {}", "give exactly one of configMap, claim and uri"),
        ("DQN", "checkpoint: {storage: {claim: a, size: 1Gi}}", "give either claim, or size"),
        ("DQN", "head: {resources: {limits: {memory: 4GB}}}", "should match"),
        ("DQN", "head: {resources: {limits: {cpu: 0.5}}}", "must be of type integer,string"),
        ("DQM", "seed: 1", "plan must be one of Apex, ApexClassic, CQL, DDPPO, DQN, OffPolicy, or one's own"),
        ("my-plans:mine", "basePlan: DQN", "or one's own as package.module:function"),
        ("my_plans:mine", "seed: 1", "basePlan is needed with a plan of one's own"),
        ("DQN", "basePlan: DQN", "basePlan is needed with a plan of one's own"),
        ("my_plans:mine", "basePlan: DQN\n  workers: {replicas: 2}", "spec.workers belongs to plan"),
    ],
)
def test_what_the_schema_can_see_is_refused_by_apply_and_by_validate(plan: str, line: str, words: str) -> None:
    assert words in refusal(manifest(line, plan=plan))


@pytest.mark.parametrize("length", [names.MAX_JOB_NAME + 1, 63, 78])
def test_name_over_the_limit_is_refused_and_the_limit_is_told(length: int) -> None:
    assert f"at most {names.MAX_JOB_NAME} characters" in refusal(manifest(name="n" * length))


def test_name_with_a_dot_is_refused_with_the_reason() -> None:
    assert "lower-case letters, digits and hyphens" in refusal(manifest(name="a.b"))


def test_name_at_the_limit_is_taken() -> None:
    assert dry_run(manifest(name="n" * names.MAX_JOB_NAME)).returncode == 0


def test_every_good_manifest_of_ours_is_taken() -> None:
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        done = dry_run(path.read_text())
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side"), ("create",)])
def test_local_and_cluster_read_the_same_job(verb: tuple[str, ...]) -> None:
    text = manifest(
        "seed: 1e6",
        "config: {lr: 1e-4, gamma: 1.0e-1, grad_clip: 0, train_batch_size: 0x20, lr_schedule: [[0, 1e-3], [5e5, 0]]}",
        "head: {resources: {limits: {cpu: 2, memory: 4Gi}}}",
        "env: {id: CartPole-v1, kwargs: {render_mode: '012', size: +3, share: .5, none: [], off_: TRUE}}",
        "image: null",
    )
    done = KUBE.run(*verb, "--dry-run=server", "-o", "json", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    served = json.loads(done.stdout)
    job = {key: served[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "schema"}}

    assert load_text(json.dumps(job)).job == load_text(text).job


@pytest.mark.parametrize(
    ("field", "edit"),
    [
        ("env.id", {"env": {"id": "Acrobot-v1"}}),
        ("checkpoint.storage", {"checkpoint": {"storage": {"claim": "another"}}}),
        ("config.model", {"config": {"model": {"fcnet_hiddens": [8]}}}),
        ("config.dueling", {"config": {"dueling": None}}),
        (None, {"config": {"lr": 0.1}, "seed": 3, "rollouts": {"replicas": 7}}),
    ],
)
def test_what_a_checkpoint_rests_on_cannot_be_changed_once_a_driver_has_begun(field: str | None, edit: Any) -> None:
    name = "schema-fixed"
    KUBE.kubectl("create", "-f", "-", stdin=manifest("config: {dueling: true}", name=name))
    try:
        merge = ["patch", names.SHORT_NAME, name, "--type=merge", "--dry-run=server", "-p"]
        assert KUBE.run(*merge, json.dumps({"spec": edit})).returncode == 0, "nothing to lose yet"
        begun = {"status": {"progress": {"phase": "Starting", "attempt": 1, "updatedAt": "2026-11-30T12:00:00Z"}}}
        KUBE.kubectl("patch", names.SHORT_NAME, name, "--type=merge", "--subresource=status", "-p", json.dumps(begun))
        done = KUBE.run(*merge, json.dumps({"spec": edit}))
        assert (f"spec.{field} can't be changed" in done.stderr) == (field is not None), done.stderr
        assert (done.returncode != 0) == (field is not None)
    finally:
        KUBE.delete(names.PLURAL, name)


def test_unquoted_scalars_are_read_as_kubectl_reads_them_or_refused() -> None:
    texts = _SCALARS.split()
    # Objects of one key each: kubectl itself drops nulls from objects when it applies.
    values = ", ".join(f"{{k: {text}}}" for text in texts)
    text = manifest(f"env: {{id: x, kwargs: {{values: [{values}]}}}}")
    done = KUBE.run("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    read: list[dict[str, Any]] = json.loads(done.stdout)["spec"]["env"]["kwargs"]["values"]
    for written, kubectls in zip(texts, read, strict=True):
        try:
            ours = scalars.resolve(written)
        except scalars.Ambiguous:
            continue
        assert ours == kubectls["k"], written
        assert isinstance(ours, bool) == isinstance(kubectls["k"], bool), written


def test_plan_of_a_job_cannot_be_changed_and_its_columns_are_served() -> None:
    name = "schema-plan"
    KUBE.kubectl("create", "-f", "-", stdin=manifest(name=name))
    try:
        assert "plan can't be changed" in dry_run(manifest(name=name, plan="DDPPO")).stderr
        header, row = KUBE.kubectl("get", names.SHORT_NAME, name).splitlines()
        assert header.split() == ["NAME", "PLAN", "STATE", "STEPS", "RETURN", "READY", "AGE"]
        assert row.split()[:2] == [name, "DQN"]
    finally:
        KUBE.delete(names.PLURAL, name)


_SCALARS = """
n y Y yes 012 1_000 0b11 0o17 0x1F 1e6 +12 -0x1F 2020-01-01 1:30 .5 1. 08 -012 1_0.5 +.5 0x1p3 = 1e-4 -0b1 _1 1__0
0_1 0x_1F 12e03 .5e 00 0 -0 +0 0X1F 0O17 0B1 1.5e+3 1e+ + .. 1.2.3 0x 0b2 0o8 +0x1 -.5 1E5 5e-324 0.1
123456789012345678 1.0 0.0 -0.0 Null ~ TRUE tRue NO nO oN Infinity inf nan 1k 1e5x --1 +-1 0e0 00.5 01.5 -01.5e2
09.5 0_1.5 _ __1 1_ 1e1_0 0xg 9223372036854775807 9223372036854775808 1e308 1e999 12:30:45 0.1e-5 +1e5 1.e5
"""
