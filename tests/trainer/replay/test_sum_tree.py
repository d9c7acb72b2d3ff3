"""The tree against sums, minima and searches done the plain way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rltrain.replay.sum_tree import PriorityTree

CAPACITIES = st.one_of(st.integers(1, 600), st.integers(66_000, 132_000))  # with one level of parents, and with two
VALUES = st.floats(1e-6, 1e6)


@st.composite
def writes(draw: st.DrawFn) -> tuple[int, list[tuple[list[int], list[float]]]]:
    capacity = draw(CAPACITIES)
    index = st.integers(0, capacity - 1)
    batches = draw(st.lists(st.lists(st.tuples(index, VALUES), min_size=1, max_size=40), max_size=6))
    return capacity, [([i for i, _ in batch], [v for _, v in batch]) for batch in batches]


@given(writes())
def test_roots_and_leaves_equal_a_plain_array_after_any_writes(
    case: tuple[int, list[tuple[list[int], list[float]]]],
) -> None:
    capacity, batches = case
    tree = PriorityTree(capacity)
    plain = np.zeros(capacity)
    written = np.zeros(capacity, bool)
    for indexes, values in batches:
        tree.set(np.array(indexes), np.array(values))
        for index, value in zip(indexes, values, strict=True):
            plain[index] = value
            written[index] = True
    np.testing.assert_array_equal(tree.leaves[:capacity], plain)
    np.testing.assert_allclose(tree.total, plain.sum(), rtol=1e-12)
    assert tree.least == (plain[written].min() if written.any() else np.inf)


@given(st.lists(VALUES, min_size=1, max_size=600), st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_find_gives_the_leaf_whose_interval_holds_the_mass(values: list[float], fractions: list[float]) -> None:
    tree = PriorityTree(len(values))
    tree.set(np.arange(len(values)), np.array(values))
    mass = np.array(fractions) * tree.total
    found = tree.find(mass, len(values))
    ends = np.cumsum(values)
    slack = 1e-9 * tree.total
    assert (found >= 0).all()
    assert (found < len(values)).all()
    assert (mass <= ends[found] + slack).all()
    assert (mass >= ends[found] - np.array(values)[found] - slack).all()


def test_find_stays_within_the_filled_leaves_at_the_upper_end() -> None:
    tree = PriorityTree(1000)
    tree.set(np.arange(3), np.array([0.1, 0.2, 0.3]))
    assert tree.find(np.array([tree.total, np.nextafter(tree.total, 2)]), 3).tolist() == [2, 2]


def test_a_root_does_not_drift_over_a_million_writes() -> None:
    tree = PriorityTree(256)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        tree.set(rng.integers(256, size=500), 10.0 ** rng.uniform(-8, 8, 500))
    tree.set(np.arange(256), 1e-8)
    assert abs(tree.total - 256e-8) < 1e-20
