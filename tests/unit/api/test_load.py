"""A manifest is read as kubectl would read it, or refused with all its problems, their places and what was meant."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rltrain.api.errors import InvalidInput, InvalidManifest, Problem
from rltrain.api.fields import example, policies_of, sections, variants
from rltrain.api.job import PLAN_SPECS, DDPPOSpec, DQNSpec
from rltrain.api.load import load_all_text, load_job, load_text
from unit.api.conftest import GOOD, manifest

Problems = Callable[..., list[Problem]]


def named(name: str, body: str = "") -> str:
    return manifest(body).replace("cartpole", name)


def spec(body: str, *overrides: str) -> DQNSpec:
    found = load_text(manifest(body), overrides).job.spec
    assert isinstance(found, DQNSpec)
    return found


class TestNumbersOfCase16:
    @pytest.mark.parametrize(
        ("text", "value"), [("1e-4", 1e-4), ("1.0e-4", 1e-4), ("1E-4", 1e-4), (".5", 0.5), ("1", 1.0)]
    )
    def test_exponents_are_floats(self, text: str, value: float) -> None:
        assert spec(f"config: {{lr: {text}}}").config.lr == value

    @pytest.mark.parametrize("text", ["1e6", "1.0e6", "1000000", "+1000000", "0xF4240"])
    def test_whole_floats_are_integers(self, text: str) -> None:
        seed = spec(f"seed: {text}").seed
        assert seed == 1_000_000
        assert isinstance(seed, int)

    @pytest.mark.parametrize(
        ("line", "path", "column", "remedy"),
        [
            ('config: {lr: "1e-4"}', "spec.config.lr", 12, "1e-4 without quotes"),
            ("seed: 50k", "spec.seed", 3, "write 50000"),
            ("seed: 1.5", "spec.seed", 3, None),
            ("config: {noisy: yes}", "spec.config.noisy", 19, 'true, or "yes" where text is meant'),
            ("seed: 012", "spec.seed", 9, "write 12"),
            ("seed: 1_000", "spec.seed", 9, "write 1000"),
            ("seed: 0b11", "spec.seed", 9, "write 3"),
            ("seed: true", "spec.seed", 3, None),
            ("config: {lr: .inf}", "spec.config.lr", 16, "finite"),
            ("config: {lr: 1e999}", "spec.config.lr", 16, "1.8e308"),
            ("seed: 99999999999999999999", "spec.seed", 9, "exponent"),
            ("config: {noisy: 1}", "spec.config.noisy", 12, None),
            ("head: {resources: {limits: {cpu: 0.5}}}", "spec.head.resources.limits.cpu", 31, '"0.5"'),
        ],
    )
    def test_what_cannot_be_meant_is_refused_with_its_place_and_remedy(
        self, problems: Problems, line: str, path: str, column: int, remedy: str | None
    ) -> None:
        (found,) = problems(manifest(line))
        assert (found.path, found.line, found.column) == (path, 8, column)
        if remedy is not None:
            assert remedy in (found.hint or "")

    @pytest.mark.parametrize(
        "text",
        ["y", "N", "on", "Off", "NO", "012", "+0o17", "1_0.5", "-.inf", ".NaN", "-0b1", "0X1F", "0_1", "0x_1", "08"],
    )
    def test_ambiguous_text_is_refused_in_free_form_objects_too(self, problems: Problems, text: str) -> None:
        (found,) = problems(manifest().replace("{id: CartPole-v1}", f"{{id: x, kwargs: {{mode: {text}}}}}"))
        assert found.path == "spec.env.kwargs.mode"

    def test_key_given_twice_is_refused_where_it_is_given_again(self, problems: Problems) -> None:
        (found,) = problems(manifest("seed: 1\nseed: 2"))
        assert (found.path, found.line, found.column) == ("spec.seed", 9, 3)
        assert "line 8" in found.message

    @pytest.mark.parametrize("key", ["1", "yes", "null", "1.5"])
    def test_key_that_is_not_text_is_refused(self, problems: Problems, key: str) -> None:
        text = manifest("").replace("{id: CartPole-v1}", f"{{id: CartPole-v1, kwargs: {{{key}: 1}}}}")
        (found,) = problems(text)
        assert f'write "{key}"' in (found.hint or "")


class TestProblemsOfCase15:
    @pytest.mark.parametrize(
        ("plan", "line", "hint"),
        [
            ("DQN", "learning_rate: 1e-4", "spec.config.lr"),
            ("DQN", "lr: 1e-4", "spec.config.lr"),
            ("DQN", "config: {num_workers: 2}", "spec.rollouts.replicas"),
            ("DDPPO", "config: {num_workers: 2}", "spec.workers.replicas"),
            ("DDPPO", "config: {num_env_runners: 2}", "spec.workers.replicas"),
            ("DDPPO", "config: {train_batch_size: 400}", "rollout_fragment_length * num_envs_per_worker"),
            ("DDPPO", "config: {torch_distributed_backend: gloo}", "spec.workers.collective.backend"),
            ("DDPPO", "config: {kl_target: 0.2}", "drift apart"),
            ("DQN", "config: {num_gpus: 1}", "nvidia.com/gpu"),
            ("DQN", "config: {batch_mode: complete_episodes}", "rollout_fragment_length"),
            (
                "DDPPO",
                "config: {double_q: true}",
                "a key of plan Apex and ApexClassic and DQN and OffPolicy with policy DQN and "
                "OffPolicy with policy R2D2, not of DDPPO",
            ),
            ("DQN", "config: {sgd_minibatch_size: 5}", "a key of plan DDPPO, not of DQN"),
            ("DQN", "config: {gama: 0.9}", "gamma"),
            ("DQN", "config: {seed: 1}", "spec.seed"),
            ("DQN", "workers: {replicas: 2}", "spec.rollouts"),
            ("DDPPO", "rollouts: {replicas: 2}", "spec.workers"),
            ("DQN", "replay: {replicas: 2}", "buffer_size"),
            ("DQN", "sede: 1", "seed"),
            ("DQN", "run_policy: {}", "runPolicy"),
            ("DQN", "labels: {a: b}", "metadata.labels"),
        ],
    )
    def test_unknown_key_leads_to_what_was_meant(self, problems: Problems, plan: str, line: str, hint: str) -> None:
        (found,) = problems(manifest(line, plan))
        assert "unknown key" in found.message
        assert hint in (found.hint or "")
        assert found.line == (9 if plan == "DDPPO" else 8)

    def test_key_in_snake_case_is_refused_where_the_manifest_has_camel_case(self, problems: Problems) -> None:
        (found,) = problems(GOOD.replace("envSteps", "envSteps: 5, env_steps") % "DQN")
        assert (found.path, found.hint) == ("spec.stop.env_steps", "did you mean envSteps?")

    def test_all_problems_are_told_at_once_in_the_order_of_the_file(self, problems: Problems) -> None:
        text = manifest("learning_rate: 1e-4\nseed: 012\nconfig:\n  gama: 1\n  lr: -1\n  v_min: no")
        assert [(p.line, p.path) for p in problems(text)] == [
            (8, "spec.learning_rate"),
            (9, "spec.seed"),
            (11, "spec.config.gama"),
            (12, "spec.config.lr"),
            (13, "spec.config.v_min"),
        ]

    @pytest.mark.parametrize(
        ("points", "words"), [("[]", "at least one"), ("[[9, 1], [0, 2]]", "0 follows 9"), ("[[0, 1], [0, 2]]", "rise")]
    )
    def test_schedule_that_goes_back_in_time_or_nowhere_is_refused(
        self, problems: Problems, points: str, words: str
    ) -> None:
        (problem,) = problems(manifest(f"config: {{lr_schedule: {points}}}"))
        assert problem.path == "spec.config.lr_schedule"
        assert words in problem.message

    def test_relation_between_fields_is_placed_at_the_one_that_is_given(self, problems: Problems) -> None:
        (found,) = problems(manifest("config:\n  gamma: 0.5\n  n_step: 9"))
        assert (found.path, found.line) == ("spec.config.n_step", 10)
        (found,) = problems(manifest("workers:\n  replicas: 1\n  minReplicas: 2", "DDPPO"))
        assert (found.path, found.line) == ("spec.workers.minReplicas", 10)

    @pytest.mark.parametrize(
        ("rollouts", "path", "words"),
        [
            ("{replicas: 2, minReplicas: 3}", "minReplicas", "must not exceed replicas"),
            ("{minReplicas: 1}", "minReplicas", "must not exceed replicas (0)"),
            ("{replicas: 4, maxReplicas: 3}", "maxReplicas", "must not be less than replicas"),
            ("{replicas: 4, autoscale: true}", "autoscale", "needs maxReplicas"),
            ("{replicas: 0, maxReplicas: 3, autoscale: true}", "autoscale", "at least 1"),
        ],
    )
    def test_rollouts_out_of_their_bounds_are_refused(
        self, problems: Problems, rollouts: str, path: str, words: str
    ) -> None:
        (found,) = problems(manifest(f"rollouts: {rollouts}"))
        assert found.path == f"spec.rollouts.{path}"
        assert words in found.message

    @pytest.mark.parametrize(("plan", "words"), [("Apex", "training_intensity"), ("ApexClassic", "use plan Apex")])
    def test_a_learner_that_runs_free_has_no_use_for_autoscaling(
        self, problems: Problems, plan: str, words: str
    ) -> None:
        (found,) = problems(manifest("rollouts: {replicas: 2, maxReplicas: 3, autoscale: true}", plan))
        assert found.path == "spec.rollouts.autoscale"
        assert words in found.message

    @pytest.mark.parametrize(
        ("plan", "words"),
        [
            ("apex", "did you mean Apex"),
            ("DQM", "did you mean DQN"),
            ("dd-ppo", "did you mean DDPPO"),
            ("42", "one of Apex, ApexClassic, CQL, DDPPO, DQN"),
        ],
    )
    def test_wrong_plan_is_answered_and_the_rest_is_still_judged(
        self, problems: Problems, plan: str, words: str
    ) -> None:
        found = problems(GOOD % plan + "  seed: -1\n  workers: {replicas: 1}\n")
        assert words in str(found[0])
        assert "spec.seed" in [p.path for p in found]

    def test_missing_fields_are_told_at_their_parent(self, problems: Problems) -> None:
        found = problems(
            "apiVersion: rltrain.dev/v1alpha1\nkind: RLTrainingJob\nmetadata: {name: a}\nspec: {plan: DDPPO}\n"
        )
        assert {(p.path, p.line) for p in found} == {("spec.env", 4), ("spec.stop", 4), ("spec.workers", 4)}

    @pytest.mark.parametrize("plan", sorted(PLAN_SPECS))
    def test_hints_of_missing_keys_are_lines_that_make_the_manifest_valid(self, problems: Problems, plan: str) -> None:
        text = f"apiVersion: rltrain.dev/v1alpha1\nkind: RLTrainingJob\nmetadata: {{name: a}}\nspec:\n  plan: {plan}\n"
        if policies := policies_of(plan):
            text += f"  config: {{policy: {policies[0]}}}\n"
        lines = [str(p.hint).removeprefix("for example ") for p in problems(text)]
        assert "env: {id: CartPole-v1}" in lines
        assert load_text(text + "".join(f"  {line}\n" for line in lines)).job.spec.plan == plan

    def test_hints_of_an_empty_manifest_are_a_manifest(self, problems: Problems) -> None:
        lines = [str(p.hint).removeprefix("for example ") for p in problems("{}")]
        assert load_text("\n".join(lines)).job.metadata.name == "cartpole"

    def test_scalar_in_place_of_a_required_object_gets_an_example(self, problems: Problems) -> None:
        (found,) = problems(manifest().replace("{id: CartPole-v1}", "CartPole-v1"))
        assert str(found).endswith('not the text "CartPole-v1" (for example env: {id: CartPole-v1})')
        (found,) = problems(manifest("head: 5"))
        assert found.hint is None

    @pytest.mark.parametrize("variant", sorted(variants()))
    def test_every_required_key_has_an_example(self, variant: str) -> None:
        required = [f for keys in sections(variant).values() for f in keys.values() if f.is_required()]
        assert all("None" not in example(field) and "<class" not in example(field) for field in required)

    @pytest.mark.parametrize("name", ["a" * 41, "1a", "a.b", "A", "a-", "a" * 63, "a" * 78])
    def test_name_that_pods_cannot_carry_is_refused(self, problems: Problems, name: str) -> None:
        (found,) = problems(manifest().replace("cartpole", f'"{name}"'))
        assert found.path == "metadata.name"
        if len(name) > 40:
            assert f"has {len(name)} characters, at most 40" in found.message

    def test_longest_legal_name_is_taken(self) -> None:
        assert load_text(manifest().replace("cartpole", "a" * 40)).job.metadata.name == "a" * 40

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("spec:\n\tplan: DQN\n", 2, "indent with spaces"),
            ("spec:\n  plan: DQN\n   seed: 1\n", 3, "indentation"),
            ("spec: [1, 2\n", 2, "not YAML"),
            ("spec: 'open\n", 2, "not YAML"),
        ],
    )
    def test_broken_yaml_is_told_with_its_place(self, problems: Problems, text: str, line: int, words: str) -> None:
        (found,) = problems(text)
        assert found.line == line
        assert words in str(found)


class TestFiles:
    def test_missing_file_folder_binary_and_empty_file_are_answered_in_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text(manifest())
        (tmp_path / "binary").write_bytes(bytes(range(256)))
        (tmp_path / "empty").write_text("\n\n")
        (tmp_path / "comment").write_text("# nothing\n")
        (tmp_path / "large").write_text("#" * (2 << 20))
        for name, words in [
            ("jobs.yaml", f"there is no file .*did you mean {tmp_path / 'job.yaml'}"),
            ("", "is a folder.*job.yaml"),
            ("binary", "not a text file"),
            ("empty", "is empty"),
            ("comment", "holds no document"),
            ("large", "larger than 1 MiB"),
        ]:
            with pytest.raises(InvalidInput, match=words):
                load_job(tmp_path / name)

    def test_file_is_read_with_or_without_a_byte_order_mark_and_as_json(self, tmp_path: Path) -> None:
        path = tmp_path / "job.yaml"
        path.write_bytes(b"\xef\xbb\xbf" + manifest("seed: 3").encode())
        assert load_job(path).spec.seed == 3
        path.write_text(load_job(path).model_dump_json(by_alias=True, exclude_none=True))
        assert load_job(path).spec.seed == 3

    def test_hyphen_is_stdin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(manifest("seed: 4").encode())))
        assert load_job("-").spec.seed == 4

    def test_the_one_job_among_several_documents_is_taken(self) -> None:
        other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        assert load_text(f"---\n{other}---\n{manifest('seed: 5')}---\n").job.spec.seed == 5

    def test_several_jobs_in_one_file_are_refused_where_one_is_wanted(self, problems: Problems) -> None:
        (found,) = problems(f"{manifest()}---\n{named('b')}")
        assert "2 RLTrainingJob documents (lines 1, 9)" in found.message

    def test_all_jobs_of_a_file_are_read_with_each_override(self) -> None:
        found = load_all_text(f"{manifest('seed: 1')}---\n{named('b')}", ["seed=7"])
        assert [(loaded.job.metadata.name, loaded.job.spec.seed) for loaded in found.jobs] == [
            ("cartpole", 7),
            ("b", 7),
        ]

    def test_problems_of_all_documents_are_told_at_once(self, problems: Problems) -> None:
        text = f"{manifest('seed: 012')}---\n{named('b', 'seed: -1')}---\n{named('c', 'learning_rate: 1')}"
        assert [(p.line, p.path) for p in problems(text)] == [
            (8, "spec.seed"),
            (17, "spec.seed"),
            (26, "spec.learning_rate"),
        ]

    def test_problem_of_a_flag_is_told_once_for_all_jobs(self, problems: Problems) -> None:
        (found,) = problems(f"{manifest()}---\n{named('b')}", "seed=-1")
        assert "--set seed=-1" in str(found)

    @pytest.mark.parametrize(
        ("head", "path"),
        [
            ("apiVersion: rltrain.dev/v1alpha1\nkind: RLTrainingJb\n", "kind"),
            ("apiVersion: v1\nkind: RLTrainJob\n", "kind"),
            ("apiVersion: rltrain.dev/v2\nkind: Job\n", "kind"),
            ("kind: 5\n", "kind"),
            ("a: 1\n", "kind"),
            ("just text\n", ""),
        ],
    )
    def test_document_that_may_be_a_misspelt_job_is_checked(self, problems: Problems, head: str, path: str) -> None:
        assert path in [p.path for p in problems(f"{manifest()}---\n{head}") if (p.line or 0) > 8]

    def test_document_of_another_kind_is_left_alone_and_told(self) -> None:
        other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: yes}\n"
        found = load_all_text(f"{manifest()}---\n{other}")
        assert len(found.jobs) == 1
        (told,) = found.others
        assert (told.line, told.path) == (10, "kind")
        assert "ConfigMap is left to kubectl" in told.message

    def test_file_without_a_job_names_the_kind_that_each_document_has(self, problems: Problems) -> None:
        found = problems("apiVersion: v1\nkind: ConfigMap\n---\napiVersion: batch/v1\nkind: Job\n")
        assert [str(p) for p in found] == [
            "2:1: kind: must be RLTrainingJob, not ConfigMap",
            "5:1: kind: must be RLTrainingJob, not Job",
        ]

    def test_two_jobs_of_one_name_are_refused(self, problems: Problems) -> None:
        (found,) = problems(f"{manifest()}---\n{manifest()}")
        assert (found.path, found.line) == ("metadata.name", 11)
        assert "line 1" in found.message
        assert (
            len(load_all_text(f"{manifest()}---\n{manifest().replace('cartpole}', 'cartpole, namespace: b}')}").jobs)
            == 2
        )

    def test_message_names_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "job.yaml"
        path.write_text(manifest("seed: -1"))
        with pytest.raises(InvalidManifest, match=f"{path}:8:3: spec.seed: must be at least 0, not -1"):
            load_job(path)


class TestAnchors:
    def test_anchors_and_merge_keys_are_written_out(self) -> None:
        body = (
            "head:\n  resources: {limits: &big {cpu: 2, memory: 4Gi}}\n"
            "rollouts:\n  replicas: 1\n  resources:\n    limits:\n      <<: *big\n      cpu: 1"
        )
        assert spec(body).rollouts.resources.limits == {"cpu": "1", "memory": "4Gi"}

    def test_earlier_object_of_a_merge_list_wins(self) -> None:
        kwargs = "env:\n  id: x\n  kwargs: {a: &a {k: 1}, b: &b {k: 2, l: 2}, c: {<<: [*a, *b]}}"
        text = manifest(kwargs).replace("  env: {id: CartPole-v1}\n", "")
        assert load_text(text).job.spec.env.kwargs["c"] == {"k": 1, "l": 2}

    def test_merge_below_a_key_that_it_would_replace_for_kubectl_is_refused(self, problems: Problems) -> None:
        (found,) = problems(manifest("head: {resources: {limits: &l {cpu: 2}, requests: {cpu: 1, <<: *l}}}"))
        assert "put << first" in (found.hint or "")

    def test_aliases_that_would_fill_the_memory_are_refused(self, problems: Problems) -> None:
        lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
        assert "20000 values" in str(problems("\n".join(lines))[0])

    def test_endless_nesting_and_an_alias_inside_its_own_anchor_are_refused(self, problems: Problems) -> None:
        assert "nested more than" in str(problems("[" * 5000)[0])
        assert "*a stands for nothing" in " ".join(map(str, problems("a: &a {b: *a}")))

    def test_tags_are_refused(self, problems: Problems) -> None:
        assert "tag" in problems(manifest('seed: !!int "3"'))[0].message


class TestOverrides:
    def test_values_are_laid_over_the_file_with_or_without_spec_and_the_last_wins(self) -> None:
        found = spec("config: {lr: 1e-4, gamma: 0.9}", "config.lr=1e-3", "spec.seed=1", "seed=2", "config.grad_clip=0")
        assert (found.config.lr, found.config.gamma, found.seed, found.config.grad_clip) == (1e-3, 0.9, 2, None)

    def test_objects_lists_and_keys_with_dots_can_be_set(self) -> None:
        found = spec(
            "", "env={id: A-v1, kwargs: {size: 3}}", "config.hiddens=[8, 8]", 'head.resources.limits."nvidia.com/gpu"=1'
        )
        assert found.env.kwargs == {"size": 3}
        assert found.config.hiddens == (8, 8)
        assert found.head.resources.limits == {"nvidia.com/gpu": "1"}

    def test_metadata_can_be_set(self) -> None:
        assert load_text(manifest(), ["metadata.name=other"]).job.metadata.name == "other"

    def test_plan_can_be_changed(self) -> None:
        assert isinstance(load_text(manifest(), ["plan=DDPPO", "workers.replicas=2"]).job.spec, DDPPOSpec)

    @pytest.mark.parametrize(
        ("flag", "words"),
        [
            ("seed=012", "write 12"),
            ("config.learning_rate=1", "spec.config.lr"),
            ("stop.envSteps=5k", "write 5000"),
            ("seed", "path=value"),
            ("=1", "path=value"),
            ("seed..x=1", "path=value"),
            ("seed.x=1", "isn't an object"),
            ("seed=[1", "isn't one YAML value"),
        ],
    )
    def test_problem_of_a_value_names_its_flag(self, problems: Problems, flag: str, words: str) -> None:
        (found,) = problems(manifest("seed: 1"), flag)
        assert f"--set {flag}" in str(found)
        assert words in str(found)
        assert found.line is None
