"""Which devices a job's parts get."""

from typing import Any

import pytest

from rltrain.policies.replicated import ReplicatedPolicy
from rltrain.policies.torch_policy import TorchPolicy
from rltrain.runtime.roles import gpus_by_role, learner_devices
from trainer.runtime.runs import APEX, CQL, DDPPO, DQN, SAC, job

TWO: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": 2}}}


@pytest.mark.parametrize("spec", [DQN, SAC, CQL, APEX])
def test_a_learner_has_all_gpus_of_its_machine_unless_the_simple_optimizer_is_asked_for(spec: dict[str, Any]) -> None:
    made = job(spec, head=TWO)
    assert learner_devices(made.spec.head, made.spec.config, elsewhere=True) == ("cuda:0", "cuda:1")
    assert learner_devices(made.spec.head, made.spec.config) == ("cpu",), "there are none here"
    simple = job(spec, head=TWO, config={"simple_optimizer": True}).spec
    assert learner_devices(simple.head, simple.config, elsewhere=True) == ("cuda:0",)
    fake = job(spec, head=TWO, config={"_fake_gpus": True}).spec
    assert learner_devices(fake.head, fake.config) == ("cpu", "cpu")
    without = job(spec).spec
    assert learner_devices(without.head, without.config, elsewhere=True) == ("cpu",)


def test_ranks_learn_on_one_device_each() -> None:
    made = job(DDPPO, head=TWO).spec
    assert learner_devices(made.head, made.config, elsewhere=True) == ("cuda:0",)


def test_faked_gpus_are_asked_of_nobody() -> None:
    assert gpus_by_role(job(APEX, learners={"replicas": 1, **TWO}))["learners"] == 2
    assert gpus_by_role(job(APEX, learners={"replicas": 1, **TWO}, config={"_fake_gpus": True}))["learners"] == 0


@pytest.mark.parametrize(("simple", "kind"), [(False, ReplicatedPolicy), (True, TorchPolicy)])
def test_the_drivers_policy_is_on_all_devices_that_it_learns_with(simple: bool, kind: type) -> None:
    from rltrain.flow import MetricsContext
    from rltrain.flow.serial import SerialBackend
    from rltrain.runtime.build import Training

    with MetricsContext().active() as metrics:
        made = job(DQN, head=TWO, config={"_fake_gpus": True, "simple_optimizer": simple})
        assert isinstance(Training(made, SerialBackend(), metrics).local.policy, kind)
