"""Every plan of the manifest can be built, and nothing else decides about plans."""

from rltrain.api import names
from rltrain.api.job import PLAN_SPECS
from rltrain.plans.registry import PLANS
from trainer.runtime.runs import SPECS, job


def test_the_manifests_plans_are_the_registrys() -> None:
    assert PLANS.keys() == PLAN_SPECS.keys() == SPECS.keys()


def test_each_plans_role_is_a_block_of_its_manifest() -> None:
    for name, plan in PLANS.items():
        assert hasattr(job(SPECS[name]).spec, plan.role)
        assert plan.role in (names.ROLLOUTS, names.WORKERS)
