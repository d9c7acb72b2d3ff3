"""Every plan of the manifest can be built, and nothing else decides about plans."""

from rltrain.api import names
from rltrain.api.job import PLAN_SPECS
from rltrain.plans.registry import PLANS
from trainer.runtime.runs import SPECS, job


def test_the_manifests_plans_are_the_registrys() -> None:
    assert PLANS.keys() == PLAN_SPECS.keys() == SPECS.keys()


def test_each_plans_roles_are_blocks_of_its_manifest() -> None:
    for name, plan in PLANS.items():
        assert all(hasattr(job(SPECS[name]).spec, role) for role in plan.roles)
        assert set(plan.roles) < set(names.ROLES)
