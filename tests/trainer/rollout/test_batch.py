"""Batches as tables."""

import pickle

import numpy as np
import pytest

from rltrain.rollout.batch import Batch


def test_columns_of_unequal_length_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="column 'b' has 2 rows where the first has 3"):
        Batch({"a": np.zeros(3), "b": np.zeros(2)})


def test_concat_slice_take_and_with_columns_keep_rows_together() -> None:
    batch = Batch({"a": np.arange(4), "b": np.arange(4) * 10})
    both = Batch.concat([batch, batch.slice(1, 3)])
    assert both["b"].tolist() == [0, 10, 20, 30, 10, 20]
    assert both.take(np.array([5, 0]))["a"].tolist() == [2, 0]
    assert batch.with_columns(c=np.ones(4)).columns.keys() == {"a", "b", "c"}
    assert "c" not in batch
    assert len(batch) == batch.count == 4


def test_batches_of_different_columns_are_not_concatenated() -> None:
    with pytest.raises(ValueError, match="columns differ"):
        Batch.concat([Batch({"a": np.zeros(1)}), Batch({"b": np.zeros(1)})])


def test_an_empty_batch_has_no_rows() -> None:
    assert Batch.concat([]).count == 0


def test_a_batch_travels_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(Batch({"a": np.arange(3)})))
    assert copy["a"].tolist() == [0, 1, 2]
    assert copy.count == 3


def test_columns_cannot_be_assigned() -> None:
    batch = Batch({"a": np.arange(3)})
    with pytest.raises(TypeError):
        batch.columns["a"] = np.zeros(3)  # type: ignore[index]
