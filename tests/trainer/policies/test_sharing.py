"""Copies of a policy that share a batch's rows learn what one learns of all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from rltrain.policies.base import LearnInfo
from rltrain.policies.sharing import Share, alone, merged, merged_stats, together
from rltrain.policies.torch_policy import TorchPolicy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import content_hash
from trainer.policies import test_cql, test_dqn, test_r2d2, test_sac


def sequences() -> Batch:
    """Of unequal lengths, so that rows and steps aren't the same."""
    each = test_r2d2.policy()
    return test_r2d2.sequences(each, [each._shape.burn_in] * 7, [3, 1, 2, 3, 1, 1, 2], seed=4)


def transitions(count: int = 7) -> Batch:
    return test_dqn.batch(count)


def continuous() -> Batch:
    return test_sac.batch().slice(0, 5)


MAKES: dict[str, tuple[Callable[[], Any], Callable[[], Batch]]] = {
    "DQN": (test_dqn.policy, transitions),
    "noisy distributional DQN": (
        lambda: test_dqn.policy(noisy=True, num_atoms=5, v_min=-2.0, v_max=2.0),
        transitions,
    ),
    "R2D2": (test_r2d2.policy, sequences),
    "SAC": (test_sac.policy, continuous),
    "CQL": (test_cql.policy, continuous),
    "CQL that imitates": (lambda: test_cql.policy(bc_iters=100), continuous),
    "CQL with a Lagrange factor": (lambda: test_cql.policy(lagrangian=True), continuous),
}


def learn(copies: Sequence[TorchPolicy], batch: Batch) -> LearnInfo:
    shares = [Share(position, len(copies)) for position in range(len(copies))]
    updates = [copy.learn_share(batch, share) for copy, share in zip(copies, shares, strict=True)]
    return merged(alone(together(updates)), [own(batch, share).steps for share in shares])


def own(batch: Batch, share: Share) -> Batch:
    rows = share.rows(batch.count)
    return batch.slice(rows.start, rows.stop)


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("name", MAKES)
def test_copies_with_unequal_shares_stay_identical_and_learn_what_one_learns_of_the_batch(
    name: str, copies: int
) -> None:
    make, rows = MAKES[name]
    one, several = make(), [make() for _ in range(copies)]
    for _ in range(4):
        batch = rows()
        assert batch.count % copies, "some have more rows than others"
        expected, info = one.learn_on_batch(batch), learn(several, batch)
        assert expected.td_error is not None
        assert info.td_error is not None
        np.testing.assert_allclose(info.td_error, expected.td_error, atol=1e-5, err_msg="in the batch's order")
        assert info.stats == pytest.approx(expected.stats, abs=1e-4, rel=1e-4)
    assert len({content_hash(copy.get_state()) for copy in several}) == 1
    np.testing.assert_allclose(several[0]._flat.vector, one._flat.vector, atol=1e-5)


def test_a_copy_without_rows_keeps_step_and_counts_for_nothing() -> None:
    one, several = test_dqn.policy(), [test_dqn.policy() for _ in range(3)]
    batch = transitions(2)
    expected, info = one.learn_on_batch(batch), learn(several, batch)
    assert expected.td_error is not None
    assert info.td_error is not None
    np.testing.assert_allclose(info.td_error, expected.td_error, atol=1e-5)
    assert info.stats == pytest.approx(expected.stats, abs=1e-4)
    assert len({content_hash(copy.learned_state()) for copy in several}) == 1
    np.testing.assert_allclose(several[0]._flat.vector, one._flat.vector, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_shares_and_parts_of_shares_cover_each_row_once_in_order(count: int) -> None:
    shares = [Share(outer, 3).part(inner, 2) for outer in range(3) for inner in range(2)]
    covered = [row for share in shares for row in range(count)[share.rows(count)]]
    assert covered == list(range(count))
    sizes = [len(range(count)[share.rows(count)]) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_statistics_are_means_by_weight_and_extremes_of_those_that_have_rows() -> None:
    told = [{"loss": 1.0, "min_q": -1.0, "max_q": 2.0}, {"loss": 4.0, "min_q": -3.0, "max_q": 1.0}]
    nothing = {"loss": 9.0, "min_q": -9.0, "max_q": 9.0}
    assert merged_stats([*told, nothing], [2, 1, 0]) == {"loss": 2.0, "min_q": -3.0, "max_q": 2.0}


def test_rows_are_weighted_by_the_steps_that_are_learnt_of_them() -> None:
    batch: Any = sequences()
    assert [own(batch, Share(position, 2)).steps for position in (0, 1)] == [6, 7]
    assert batch[c.SEQ_LENS].sum() == 13
