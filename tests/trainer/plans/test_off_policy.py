"""The OffPolicy plan: what it does in which order, and what its buffer holds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import UnsupportedSpace
from rltrain.flow import PROGRESS, MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.ops import PlanContext
from rltrain.plans.off_policy import off_policy
from rltrain.rollout import columns as c
from rltrain.runtime.build import Training
from trainer.runtime.runs import DQN, SAC, job, results, run_serially


def test_it_stores_and_trains_in_turn_and_moves_the_target_with_each_update() -> None:
    config = {key: value for key, value in SAC["config"].items() if key != "training_intensity"}
    metrics = MetricsContext()
    with metrics.active():
        built = Training(job({**SAC, "config": {**config, "learning_starts": 16}}), SerialBackend(), metrics)
        table = []
        for _ in range(6):
            item = built.flow.pull()
            assert item is PROGRESS or not isinstance(item, Signal)
            counters = metrics.counters
            table.append((counters[STEPS_SAMPLED], counters[STEPS_TRAINED], counters["num_target_updates"]))
    assert table == [(8, 0, 0), (16, 0, 0), (16, 16, 1), (24, 16, 1), (24, 32, 2), (32, 32, 2)]


def test_the_buffer_is_the_one_that_is_handed_in_and_checkpoints_hold_it() -> None:
    metrics = MetricsContext()
    with metrics.active():
        built = Training(job(SAC), SerialBackend(), metrics)
        for _ in range(5):
            built.flow.pull()
        assert built.context.replay is built.context.kept["replay"]
        assert built.context.replay is not None
        assert len(built.context.replay) == metrics.counters[STEPS_SAMPLED] == 40
        assert built.get_state()["replay"]["size"] == 40
        with pytest.raises(ValueError, match="handed in"):
            off_policy(PlanContext(built.context.config, built.workers))


@pytest.mark.parametrize(
    "env",
    [{"id": "probes.envs:Spaces", "kwargs": {"act": act}} for act in ("skewed box", "double box", "integers")]
    + [{"id": "Pendulum-v1"}],
    ids=["skewed", "double", "integers", "pendulum"],
)
def test_stored_actions_lie_from_minus_1_to_1_and_the_environment_gets_contained_ones(env: dict[str, Any]) -> None:
    metrics = MetricsContext()
    with metrics.active():
        built = Training(
            job(SAC, env=env, config={"learning_starts": 200, "buffer_size": 300}), SerialBackend(), metrics
        )
        while metrics.counters[STEPS_SAMPLED] < 240:  # random ones and the policy's; the probe asserts that it has them
            built.flow.pull()
        assert built.context.replay is not None
        stored = built.context.replay.get_state()["columns"][c.ACTIONS]
    assert stored.dtype == np.float32
    assert np.abs(stored).max() <= 1
    assert (stored.min(axis=0) < -0.95).all()
    assert (stored.max(axis=0) > 0.95).all()


@pytest.mark.parametrize("act", ["endless box", "half box"])
def test_infinite_bounds_are_refused_with_what_to_do(act: str, tmp_path: Path) -> None:
    env = {"id": "probes.envs:Spaces", "kwargs": {"act": act}}
    with pytest.raises(UnsupportedSpace, match=r"OffPolicy with policy SAC.*infinite.*RescaleAction"):
        run_serially(job(SAC, env=env), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_space_that_one_algorithm_cannot_take_is_refused_by_its_name(tmp_path: Path) -> None:
    dqn = {**DQN, "plan": "OffPolicy", "config": {**DQN["config"], "policy": "DQN"}, "env": {"id": "Pendulum-v1"}}
    with pytest.raises(UnsupportedSpace, match=r"OffPolicy with policy DQN.*OffPolicy with policy SAC"):
        run_serially(job(dqn), tmp_path / "run")


def test_results_tell_of_alpha_entropy_and_values(tmp_path: Path) -> None:
    run_serially(job(SAC), tmp_path / "run")
    last = results(tmp_path / "run")[-1]
    assert {"alpha", "entropy", "mean_q", "actor_loss", "critic_loss"} <= last["info"]["learner"].keys()
    assert last["exploration"]["alpha"] > 0
