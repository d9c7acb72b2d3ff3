"""A plan of one's own in a manifest: which built-in one it is like decides the rest."""

from collections.abc import Callable

import pytest

from rltrain.api.errors import Problem
from rltrain.api.job import ApexSpec, OffPolicySpec
from rltrain.api.load import load_text, validate
from rltrain.api.resolve import resolved
from unit.api.conftest import manifest

Problems = Callable[..., list[Problem]]


def test_ones_own_plan_has_the_config_and_roles_of_its_base() -> None:
    spec = load_text(manifest("basePlan: Apex\nreplay: {replicas: 2}", "my_pkg.plans:mine")).job.spec
    assert isinstance(spec, ApexSpec)
    assert (spec.plan, spec.base_plan, spec.base) == ("my_pkg.plans:mine", "Apex", "Apex")
    assert spec.config.train_batch_size == 512
    off_policy = load_text(manifest("basePlan: OffPolicy\nconfig: {policy: R2D2}", "plans:mine")).job.spec
    assert isinstance(off_policy, OffPolicySpec)
    assert off_policy.config.policy == "R2D2"


def test_it_is_read_from_a_resolved_manifest_as_it_was_and_a_built_in_plan_is_its_own_base() -> None:
    for text in (manifest("basePlan: Apex", "my_pkg.plans:mine"), manifest()):
        job = load_text(text).job
        again, problems = validate(resolved(job))
        assert not problems
        assert again is not None
        assert (again.spec, again.spec.base) == (job.spec, job.spec.base)


def test_it_must_say_its_base_and_a_built_in_plan_must_not(problems: Problems) -> None:
    (missing,) = problems(manifest("seed: 2", "my_plans:mine"))
    assert missing.path == "spec.basePlan"
    assert "is required with a plan of your own: one of Apex, ApexClassic, CQL" in missing.message
    assert "config, roles and context my_plans:mine has" in (missing.hint or "")
    (wrong,) = problems(manifest("basePlan: apex", "my_plans:mine"))
    assert (wrong.path, wrong.hint) == ("spec.basePlan", "did you mean Apex?")
    (needless,) = problems(manifest("basePlan: Apex", "DQN"))
    assert needless.path == "spec.basePlan"
    assert "DQN is built in" in needless.message
    assert 'set plan to your "package.module:function"' in (needless.hint or "")


@pytest.mark.parametrize("plan", ["my-plans:mine", "my_plans:", ":mine", "my_plans:mine:too", "my plans:mine", "a.:b"])
def test_what_is_no_reference_is_answered_with_the_form_of_one(problems: Problems, plan: str) -> None:
    (found,) = problems(manifest("basePlan: Apex", f'"{plan}"'))
    assert found.path == "spec.plan"
    assert found.hint == 'a plan of your own is "package.module:function"'


def test_what_its_base_has_not_is_refused_as_for_the_base(problems: Problems) -> None:
    (found,) = problems(manifest("basePlan: DQN\nworkers: {replicas: 2}", "my_plans:mine"))
    assert found.path == "spec.workers"
    assert "DQN's rollout workers are spec.rollouts" in (found.hint or "")
    (missing,) = problems(manifest("basePlan: DDPPO", "my_plans:mine"))
    assert missing.path == "spec.workers"
