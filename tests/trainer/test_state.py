"""Hashes of states and random generators' states."""

import numpy as np
import pytest

from rltrain.state import content_hash, generator_state, restore_generator


def test_equal_states_have_equal_hashes_whatever_the_order_of_keys() -> None:
    first = {"a": np.arange(3), "b": [1, None, "x", 2.0, True]}
    second = {"b": [1, None, "x", 2.0, True], "a": np.arange(3)}
    assert content_hash(first) == content_hash(second)


@pytest.mark.parametrize(
    "other",
    [
        {"a": np.arange(4)},
        {"b": np.arange(3)},
        {"a": np.arange(3, dtype=np.int32)},
        {"a": np.arange(3).reshape(3, 1)},
        {"a": [0, 1, 2]},
        {"a": np.arange(3), "b": None},
    ],
)
def test_other_values_names_dtypes_shapes_and_kinds_have_other_hashes(other: object) -> None:
    assert content_hash({"a": np.arange(3)}) != content_hash(other)


@pytest.mark.parametrize(("first", "second"), [(1, 1.0), (1, True), (None, "None"), (["ab"], ["a", "b"]), ([[]], [])])
def test_scalars_of_other_types_and_other_nestings_have_other_hashes(first: object, second: object) -> None:
    assert content_hash(first) != content_hash(second)


def test_what_a_checkpoint_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="can't hold set"):
        content_hash({"a": {1, 2}})


def test_a_generator_goes_on_from_its_state() -> None:
    first, second = np.random.default_rng(1), np.random.default_rng(2)
    first.random(5)
    restore_generator(second, generator_state(first))
    assert first.random(4).tolist() == second.random(4).tolist()


@pytest.mark.parametrize("state", [{}, {"bit_generator": "MT19937"}, {"bit_generator": "PCG64", "state": 3}])
def test_a_malformed_generator_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"generator|PCG64"):
        restore_generator(np.random.default_rng(), state)
