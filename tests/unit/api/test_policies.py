"""A plan with several algorithms: `config.policy` decides which keys there are."""

from collections.abc import Callable

import pytest

from rltrain.api.config import CQLConfig, OffPolicyDQNConfig, SACConfig
from rltrain.api.crd import crd
from rltrain.api.errors import Problem
from rltrain.api.fields import sections, variants
from rltrain.api.load import load_text
from rltrain.api.resolve import resolved_yaml
from unit.api.conftest import manifest

Problems = Callable[..., list[Problem]]


def config(text: str, plan: str = "OffPolicy") -> object:
    return load_text(manifest(f"config: {text}", plan)).job.spec.config


def test_the_policy_chooses_the_model_and_its_defaults() -> None:
    sac = config("{policy: SAC}")
    assert isinstance(sac, SACConfig)
    assert (sac.lr, sac.train_batch_size, sac.learning_starts, sac.rollout_fragment_length) == (3e-4, 256, 1500, 1)
    assert (sac.tau, sac.initial_alpha, sac.target_entropy, sac.model.fcnet_hiddens) == (5e-3, 1.0, None, (256, 256))
    dqn = config("{policy: DQN}")
    assert isinstance(dqn, OffPolicyDQNConfig)
    assert (dqn.lr, dqn.train_batch_size, dqn.learning_starts) == (5e-4, 32, 1000)


def test_cql_has_its_seed_s_defaults() -> None:
    cql = config("{input: data.npz}", "CQL")
    assert isinstance(cql, CQLConfig)
    assert (cql.bc_iters, cql.temperature, cql.num_actions, cql.min_q_weight) == (20_000, 1.0, 10, 5.0)
    assert (cql.lagrangian, cql.lagrangian_thresh, cql.lr, cql.tau) == (False, 5.0, 3e-4, 5e-3)


@pytest.mark.parametrize("text", ["{policy: SAC, tau: 0.01}", "{policy: DQN, double_q: false}"])
def test_a_resolved_manifest_reads_back(text: str) -> None:
    job = load_text(manifest(f"config: {text}", "OffPolicy")).job
    assert load_text(resolved_yaml(job)).job == job


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("{}", "spec.config.policy", "is required: one of SAC, DQN, R2D2"),
        ("null", "spec.config.policy", "is required: one of SAC, DQN, R2D2"),
        ("{policy: sac}", "spec.config.policy", "did you mean SAC"),
        ("{policy: R2D2, compile: Always}", "spec.config.compile", "must be one of Auto, Never, not the text"),
        ("{policy: SAC, compile: Now}", "spec.config.compile", "must be one of Auto, Always, Never, not the text"),
        ("{policy: R2D2, n_step: 3}", "spec.config.n_step", "must be 1 with policy R2D2"),
        ("{policy: R2D2, buffer_size: 9}", "spec.config.buffer_size", "must hold the 50 sequences of 20 steps"),
        ("{policy: R2D2, model: {use_lstm: true}}", "spec.config.model.use_lstm", "model.recurrent says which"),
        ("{policy: R2D2, replay_burn_in: 5}", "spec.config.replay_burn_in", "spec.config.burn_in"),
        ("{policy: R2D2, replay_sequence_length: 5}", "spec.config.replay_sequence_length", "burn_in + model"),
        ("{policy: SAC, model: {conv_filters: [[8, [3, 2], 1]]}}", "spec.config.model.conv_filters", "must be square"),
        ("{policy: PPO}", "spec.config.policy", "must be one of SAC, DQN, R2D2"),
        ("{policy: 3}", "spec.config.policy", "must be one of SAC, DQN, R2D2, not 3"),
        ("[1]", "spec.config", "must be an object"),
        ("{policy: SAC, tua: 1}", "spec.config.tua", "unknown key"),
        ("{policy: SAC, initial_aplha: 1}", "spec.config.initial_aplha", "did you mean initial_alpha"),
        ("{policy: SAC, double_q: true}", "spec.config.double_q", "not of OffPolicy with policy SAC"),
        ("{policy: DQN, tau: 0.1}", "spec.config.tau", "a key of plan CQL and OffPolicy with policy SAC, not of"),
        ("{policy: SAC, bc_iters: 1}", "spec.config.bc_iters", "a key of plan CQL, not of"),
        ("{policy: SAC, twin_q: true}", "spec.config.twin_q", "always two critics"),
        ("{policy: SAC, num_workers: 2}", "spec.config.num_workers", "spec.rollouts.replicas"),
        ("{policy: SAC, lr: 0}", "spec.config.lr", "must be more than 0"),
        ("{policy: SAC, n_step: 3}", "spec.config.n_step", "must be at least n_step"),
        ("{policy: SAC, model: {fcnet_hidden: [3]}}", "spec.config.model.fcnet_hidden", "did you mean fcnet_hiddens"),
    ],
)
def test_what_is_wrong_is_told_with_the_algorithm_in_mind(problems: Problems, text: str, path: str, words: str) -> None:
    (found,) = problems(manifest(f"config: {text}", "OffPolicy"))
    assert found.path == path
    assert words in str(found)


def test_a_misspelt_policy_doesn_t_hide_the_other_problems(problems: Problems) -> None:
    found = problems(manifest("config: {policy: sac, lr: -1, tua: 1}\nseed: -1", "OffPolicy"))
    assert [p.path for p in found] == ["spec.config.policy", "spec.config.lr", "spec.config.tua", "spec.seed"]


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ("seed: 1", "spec.config", "is required"),
        ("config: {bc_iters: 0}", "spec.config.input", "is required"),
        ("config: {input: a, rollout_fragment_length: 4}", "spec.config.rollout_fragment_length", "not of CQL"),
        ("config: {input: a}\nrollouts: {replicas: 1}", "spec.rollouts", "nothing samples"),
        ("config: {input: a, num_workers: 1}", "spec.config.num_workers", "nothing samples"),
        ("config: {inputs: a, input: b}", "spec.config.inputs", "did you mean input"),
    ],
)
def test_cql_s_own_problems(problems: Problems, line: str, path: str, words: str) -> None:
    (found,) = problems(manifest(line, "CQL"))
    assert found.path == path
    assert words in str(found)


def test_every_variant_has_sections_of_its_own() -> None:
    assert {"OffPolicy with policy SAC", "OffPolicy with policy DQN", "CQL", "DQN"} <= variants().keys()
    assert "tau" in sections("OffPolicy with policy SAC")["spec", "config"]
    assert "tau" not in sections("OffPolicy with policy DQN")["spec", "config"]


def test_the_crd_has_rules_for_keys_of_one_algorithm() -> None:
    spec = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = spec["x-kubernetes-validations"]
    messages = [rule["message"] for rule in rules if "message" in rule]
    told = {rule["messageExpression"].rpartition("+ ")[2]: rule for rule in rules if "messageExpression" in rule}
    of_sac = told['" belongs to policy SAC"']
    assert "has(self.config.target_entropy) ? 'spec.config.target_entropy'" in of_sac["messageExpression"]
    assert "self.config.policy in ['SAC'] || " in of_sac["rule"]
    assert "has(self.config.tau)" in of_sac["rule"]
    assert "has(self.config.double_q)" in told['" belongs to policy DQN or R2D2"']["rule"]
    assert "plan OffPolicy needs spec.config.policy" in messages
    assert "plan CQL needs spec.config.input" in messages
    assert spec["properties"]["config"]["properties"]["policy"]["enum"] == ["DQN", "R2D2", "SAC"]


@pytest.mark.parametrize("algorithm", ["SAC", "r2d2"])
def test_an_algorithm_given_as_the_plan_leads_to_its_plan(algorithm: str, problems: Problems) -> None:
    (problem,) = problems(manifest(f"config: {{policy: {algorithm.upper()}}}", algorithm))
    assert problem.path == "spec.plan"
    assert problem.hint == f"write plan: OffPolicy and config.policy: {algorithm.upper()}"
