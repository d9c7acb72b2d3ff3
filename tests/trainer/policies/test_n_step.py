"""N-step returns against sums written out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.policies.n_step import n_step
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch

GAMMA = 0.5


def rows(rewards: list[float], terminated: list[int], truncated: list[int], env: list[int] | None = None) -> Batch:
    count = len(rewards)
    ends = np.zeros(count, bool)
    batch = {
        c.OBS: np.arange(count, dtype=np.float32)[:, None],
        c.NEXT_OBS: np.arange(count, dtype=np.float32)[:, None] + 0.5,
        c.ACTIONS: np.arange(count),
        c.REWARDS: np.array(rewards, np.float32),
        c.TERMINATEDS: ends.copy(),
        c.TRUNCATEDS: ends.copy(),
        c.ENV_ID: np.array(env or [0] * count),
    }
    batch[c.TERMINATEDS][terminated] = True
    batch[c.TRUNCATEDS][truncated] = True
    return Batch(batch)


def test_rewards_are_summed_up_to_n_and_bootstrapped_with_gamma_to_the_steps_taken() -> None:
    out = n_step(rows([1, 2, 4, 8, 16], [], []), 3, GAMMA)
    assert out[c.REWARDS].tolist() == [1 + 1 + 1, 2 + 2 + 2, 4 + 4 + 4, 8 + 8, 16]
    assert out[c.DISCOUNTS].tolist() == [0.125, 0.125, 0.125, 0.25, 0.5]
    assert out[c.NEXT_OBS][:, 0].tolist() == [2.5, 3.5, 4.5, 4.5, 4.5]
    assert out[c.OBS][:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_termination_ends_the_sum_and_the_bootstrap() -> None:
    out = n_step(rows([1, 2, 4, 8], [1], []), 3, GAMMA)
    assert out[c.REWARDS].tolist() == [2, 2, 8, 8]
    assert out[c.DISCOUNTS].tolist() == [0, 0, 0.25, 0.5]


def test_a_truncation_ends_the_sum_and_is_bootstrapped_from_its_final_observation() -> None:
    out = n_step(rows([1, 2, 4, 8], [], [1]), 3, GAMMA)
    assert out[c.REWARDS].tolist() == [2, 2, 8, 8]
    assert out[c.DISCOUNTS].tolist() == [0.25, 0.5, 0.25, 0.5]
    assert out[c.NEXT_OBS][:, 0].tolist() == [1.5, 1.5, 3.5, 3.5]


def test_rows_of_another_environment_are_not_gone_on_with() -> None:
    out = n_step(rows([1, 2, 4, 8], [], [], env=[0, 0, 1, 1]), 2, GAMMA)
    assert out[c.REWARDS].tolist() == [2, 2, 8, 8]
    assert out[c.DISCOUNTS].tolist() == [0.25, 0.5, 0.25, 0.5]


def test_the_batch_given_is_left_alone() -> None:
    batch = rows([1, 2, 4], [1], [])
    before = {name: column.copy() for name, column in batch.columns.items()}
    n_step(batch, 3, GAMMA)
    for name, column in before.items():
        np.testing.assert_array_equal(batch[name], column)


@given(st.data(), st.integers(1, 6), st.integers(1, 25))
def test_any_rows_give_what_a_plain_loop_gives(data: st.DataObject, n: int, count: int) -> None:
    index = st.lists(st.integers(0, count - 1), max_size=8)
    terminated, truncated = data.draw(index), data.draw(index)
    env = sorted(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    rewards = data.draw(st.lists(st.integers(-9, 9).map(float), min_size=count, max_size=count))
    batch = rows(rewards, terminated, truncated, env)
    out = n_step(batch, n, GAMMA)
    for row in range(count):
        total, k, at = 0.0, 0, row
        while True:
            total += GAMMA**k * rewards[at]
            k += 1
            if k == n or at in terminated or at in truncated or at + 1 == count or env[at + 1] != env[row]:
                break
            at += 1
        assert out[c.REWARDS][row] == pytest.approx(total)
        assert out[c.DISCOUNTS][row] == (0 if at in terminated else GAMMA**k)
        assert out[c.NEXT_OBS][row, 0] == at + 0.5
