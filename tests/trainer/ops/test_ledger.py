"""The ledger holds trained steps to a ratio of sampled ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.ops import IntensityLedger


@given(
    st.lists(st.integers(1, 500), min_size=50, max_size=200),
    st.floats(0.05, 50),
    st.integers(1, 512),
)
def test_ratio_holds_to_within_a_batch_whatever_the_stores_bring(
    stores: list[int], intensity: float, batch: int
) -> None:
    ledger = IntensityLedger(intensity, batch)
    trained = 0
    for steps in stores:
        ledger.earn(steps)
        while ledger.due:
            ledger.spend(batch)
            trained += batch
    assert trained <= sum(stores) * intensity * (1 + 1e-9)
    assert trained >= sum(stores) * intensity - batch - 1e-6


def test_without_an_intensity_each_store_pays_for_one_batch_and_none_is_made_up_for() -> None:
    ledger = IntensityLedger(None, 32)
    assert not ledger.due
    for steps in (1, 1000, 7):
        ledger.earn(steps)
        ledger.earn(steps)
        assert ledger.due
        ledger.spend(32)
        assert not ledger.due


def test_credit_outlives_a_restart() -> None:
    ledger = IntensityLedger(0.5, 32)
    ledger.earn(63)
    again = IntensityLedger(0.5, 32)
    again.set_state(ledger.get_state())
    assert not again.due
    again.earn(1)
    assert again.due


@pytest.mark.parametrize("fragment", [4, 32, 640])
def test_fractional_and_large_ratios_are_kept_exactly_over_time(fragment: int) -> None:
    ledger = IntensityLedger(1 / 3, 32)
    trained = 0
    for _ in range(9600 // fragment):
        ledger.earn(fragment)
        while ledger.due:
            ledger.spend(32)
            trained += 32
    assert abs(trained - 3200) <= 32
