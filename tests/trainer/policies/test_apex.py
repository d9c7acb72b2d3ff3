"""Ape-X's exploration by worker index and its workers' own judgement, against values worked out apart from it."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rltrain.api.config import ApexConfig, ExplorationConfig, ModelConfig
from rltrain.policies.apex import ApexPolicy, worker_epsilon
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch

OBS = spaces.Box(-1, 1, (3,))
RNG = np.random.default_rng(0)


def policy(worker: int = 1, workers: int = 3, seed: int = 0, **options: Any) -> ApexPolicy:
    config = ApexConfig(model=ModelConfig(fcnet_hiddens=(16,)), hiddens=(16,), **options)
    return ApexPolicy(config, OBS, spaces.Discrete(4), Seeds(seed, worker), workers=workers)


def learner(**options: Any) -> ApexPolicy:
    """With a target network unlike the online one, so that mixing them up shows."""
    made = policy(worker=0, **options)
    made._target_flat.set(policy(seed=1, **options)._flat.get())
    return made


def batch(count: int = 8) -> Batch:
    return Batch(
        {
            c.OBS: RNG.normal(size=(count, 3)).astype(np.float32),
            c.NEXT_OBS: RNG.normal(size=(count, 3)).astype(np.float32),
            c.ACTIONS: RNG.integers(4, size=count),
            c.REWARDS: RNG.normal(size=count).astype(np.float32) * 3,
            c.DISCOUNTS: np.where(np.arange(count) % 3 == 0, 0, 0.99).astype(np.float32),
        }
    )


def test_each_worker_explores_to_its_own_degree_from_two_fifths_to_its_eighth_power() -> None:
    # 0.4^(1 + 7 (i - 1) / 7), whose exponents are 1 to 8.
    assert [worker_epsilon(worker, 8) for worker in range(1, 9)] == pytest.approx([0.4**power for power in range(1, 9)])
    assert [worker_epsilon(worker, 3) for worker in (1, 2, 3)] == pytest.approx([0.4, 0.4**4.5, 0.4**8])


def test_one_worker_has_two_fifths_and_the_driver_beside_workers_none() -> None:
    assert worker_epsilon(1, 1) == 0.4
    assert worker_epsilon(0, 1) == worker_epsilon(0, 32) == 0.0


def test_epsilons_stay_as_they_are_whatever_the_global_step() -> None:
    for worker in range(4):
        made = policy(worker)
        before = made.exploration_state()
        made.set_global_step(10**6)
        assert made.exploration_state() == before == {"epsilon": worker_epsilon(worker, 3)}


def test_without_workers_the_driver_explores_by_dqns_schedule() -> None:
    made = policy(worker=0, workers=0, exploration_config=ExplorationConfig(epsilon_timesteps=100))
    assert made.exploration_state() == {"epsilon": 1.0}
    made.set_global_step(50)
    assert made.exploration_state() == {"epsilon": pytest.approx(0.51)}


def test_exploration_happens_as_often_as_epsilon_says() -> None:
    obs = RNG.normal(size=(4000, 3)).astype(np.float32)
    for worker, epsilon in ((1, 0.4), (3, 0.4**8), (0, 0.0)):
        made = policy(worker)
        best, _ = made.compute_actions(obs, explore=False)
        actions, _ = made.compute_actions(obs, explore=True)
        # A random action is the best one by chance in one of four cases.
        assert np.mean(actions != best) == pytest.approx(epsilon * 3 / 4, abs=0.03)
        if worker == 0:
            assert (actions == best).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"double_q": False}, {"dueling": False}, {"num_atoms": 7, "v_min": -3.0, "v_max": 3.0}],
    ids=["double", "not double", "not dueling", "distributional"],
)
def test_first_priorities_are_the_errors_that_an_update_would_find(options: dict[str, Any]) -> None:
    rows = batch()
    judge, twin = learner(**options), learner(**options)
    found = twin.learn_on_batch(rows).td_error
    assert found is not None
    assert judge.td_error(rows) == pytest.approx(found, abs=1e-5)


def test_a_worker_judges_with_the_learners_target_network() -> None:
    rows, source, worker = batch(), learner(), policy(worker=2)
    own = worker.td_error(rows)
    worker.set_weights(source.get_weights())
    assert own is not None
    assert worker.td_error(rows) == pytest.approx(source.td_error(rows), abs=1e-6)
    assert worker.td_error(rows) != pytest.approx(own, abs=1e-3)


def test_judging_leaves_no_trace_in_what_is_learnt_or_drawn() -> None:
    one, other = learner(), learner()
    one.td_error(batch())
    assert one.get_state()["rng"] == other.get_state()["rng"]
    assert all((one.get_weights()[name] == value).all() for name, value in other.get_weights().items())


@pytest.mark.parametrize("option", ["worker_side_prioritization", "prioritized_replay"])
def test_without_worker_side_priorities_the_target_stays_with_the_learner(option: str) -> None:
    made = learner(**{option: False})
    assert made.td_error(batch()) is None
    assert not any(name.startswith("target") for name in made.get_weights())


def test_weights_without_a_target_are_taken_as_checkpoints_keep_them() -> None:
    source, worker = learner(), policy(worker=2)
    worker.set_weights(source._flat.get())
    assert all((worker._flat.get()[name] == value).all() for name, value in source._flat.get().items())
