"""Advantages at ends, cuts and borders."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rltrain.policies.gae import gae, standardized

ROWS = st.integers(1, 30)


def test_with_lambda_1_advantages_are_discounted_returns_less_values() -> None:
    rewards, values = np.ones(3, np.float32), np.array([5, 6, 7], np.float32)
    advantages = gae(rewards, values, np.array([6, 7, 8.0]), np.zeros(3, bool), np.array([True, True, False]), 0.5, 1)
    np.testing.assert_allclose(advantages, [1 + 0.5 + 0.25 + 0.125 * 8 - 5, 1 + 0.5 + 0.25 * 8 - 6, 1 + 0.5 * 8 - 7])


def test_a_truncated_step_bootstraps_and_a_terminated_one_does_not() -> None:
    rewards, values, following = np.ones(2, np.float32), np.zeros(2, np.float32), np.array([10.0, 10.0])
    advantages = gae(rewards, values, following, np.array([False, True]), np.array([False, False]), 0.9, 0.95)
    np.testing.assert_allclose(advantages, [10, 1])


@given(st.data(), ROWS, st.floats(0, 1), st.floats(0, 1))
def test_any_rows_give_what_the_definition_s_double_sum_gives(
    data: st.DataObject, count: int, gamma: float, lambda_: float
) -> None:
    numbers = st.lists(st.floats(-10, 10, width=32), min_size=count, max_size=count)
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    rewards, values, following = (np.array(data.draw(numbers), np.float32) for _ in range(3))
    terminateds = np.array(data.draw(flags))
    goes_on = np.array(data.draw(flags)) & ~terminateds
    goes_on[-1] = False
    advantages = gae(rewards, values, following, terminateds, goes_on, gamma, lambda_)
    for row in range(count):
        total, k, at = 0.0, 0, row
        while True:
            delta = float(rewards[at]) - float(values[at])
            delta += 0 if terminateds[at] else gamma * float(following[at])
            total += (gamma * lambda_) ** k * delta
            if not goes_on[at]:
                break
            k, at = k + 1, at + 1
        np.testing.assert_allclose(advantages[row], total, rtol=1e-5, atol=1e-4)


def test_standardising_has_a_floor_so_that_equal_advantages_stay_small() -> None:
    np.testing.assert_array_equal(standardized(np.full(5, 3.0, np.float32)), 0)
    tiny = standardized(np.array([0, 1e-6], np.float32))
    assert np.abs(tiny).max() < 0.01
    wide = standardized(np.array([1, 2, 3, 4], np.float32))
    np.testing.assert_allclose([wide.mean(), wide.std()], [0, 1], atol=1e-6)
    assert standardized(np.zeros(0, np.float32)).size == 0
