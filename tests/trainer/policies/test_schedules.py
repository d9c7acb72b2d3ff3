"""Schedules on the global step."""

import pytest
from gymnasium import spaces

from rltrain.api.config import DDPPOConfig, DQNConfig, ExplorationConfig
from rltrain.policies.base import interpolate
from rltrain.policies.registry import make_policy

BOX = spaces.Box(-1, 1, (2,))
TWO = spaces.Discrete(2)


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (100, 1.0), (150, 0.75), (200, 0.5), (300, 0.0), (9999, 0.0)])
def test_a_schedule_is_linear_between_points_and_constant_outside(step: int, value: float) -> None:
    assert interpolate(((100, 1.0), (200, 0.5), (300, 0.0)), step) == pytest.approx(value)


def test_epsilon_falls_with_the_global_step_and_a_missed_one_makes_no_difference() -> None:
    config = DQNConfig(exploration_config=ExplorationConfig(final_epsilon=0.1, epsilon_timesteps=100))
    policy = make_policy("DQN", config, BOX, TWO, seed=0)
    assert policy.exploration_state() == {"epsilon": 1.0}
    policy.set_global_step(50)
    assert policy.exploration_state()["epsilon"] == pytest.approx(0.55)
    policy.set_global_step(100_000)
    assert policy.exploration_state()["epsilon"] == pytest.approx(0.1)


def test_a_noisy_policy_has_no_epsilon() -> None:
    policy = make_policy("DQN", DQNConfig(noisy=True), BOX, TWO, seed=0)
    assert policy.exploration_state() == {"epsilon": 0.0}


def test_learning_rate_and_entropy_weight_follow_their_schedules_and_survive_a_resume() -> None:
    config = DDPPOConfig(lr_schedule=((0, 1e-3), (100, 0.0)), entropy_coeff_schedule=((0, 0.5), (100, 0.1)))
    policy = make_policy("DDPPO", config, BOX, TWO, seed=0)
    policy.set_global_step(75)
    resumed = make_policy("DDPPO", config, BOX, TWO, seed=0)
    resumed.set_state(policy.get_state())
    for each in (policy, resumed):
        assert each.exploration_state()["entropy_coeff"] == pytest.approx(0.2)
        assert each._lr == pytest.approx(2.5e-4)  # type: ignore[attr-defined]
