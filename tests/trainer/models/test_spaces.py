"""Encoding of observations and mapping of actions."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from probes.envs import SPACES
from rltrain.models.spaces import ObsEncoder, action_mapping
from rltrain.state import Array


def encode(space: spaces.Space[Array], obs: Array) -> list[list[float]]:
    encoder = ObsEncoder(space)
    out = encoder(torch.from_numpy(obs))
    assert out.dtype == torch.float32
    assert out.shape == (len(obs), encoder.size)
    return out.tolist()  # type: ignore[no-any-return]


def test_discrete_observations_are_one_hot_from_any_start() -> None:
    assert encode(SPACES["from minus one"], np.array([-1, 1])) == [[1, 0, 0], [0, 0, 1]]
    assert encode(SPACES["multi from five"], np.array([[5, -3], [6, -5]])) == [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]]
    assert encode(SPACES["bits"], np.array([[1, 0, 1]], np.int8)) == [[1, 0, 1]]


def test_boxes_are_flattened_and_bytes_become_fractions() -> None:
    assert encode(SPACES["float64"], np.array([[[1.0, 2.0], [3.0, 4.0]]])) == [[1, 2, 3, 4]]
    image = np.full((1, 4, 5, 3), 255, np.uint8)
    assert encode(SPACES["image"], image) == [[1.0] * 60]
    assert encode(SPACES["integers"], np.array([[-5, 5]], np.int32)) == [[-5, 5]]
    assert encode(SPACES["scalar"], np.array([0.5], np.float32)) == [[0.5]]


@pytest.mark.parametrize(
    ("name", "actions", "expected"),
    [
        ("from minus one", [0, 2], [-1, 1]),
        ("two", [0, 1], [0, 1]),
        ("multi from five", [[0, 0], [1, 2]], [[5, -5], [6, -3]]),
        ("multi 2d", [[0, 1]], [[[0], [1]]]),
        ("bits", [[1, 0, 1]], [[1, 0, 1]]),
    ],
)
def test_discrete_actions_are_shifted_and_shaped(name: str, actions: list[int], expected: list[int]) -> None:
    mapped = action_mapping(SPACES[name])(np.array(actions))
    assert mapped.tolist() == expected
    assert all(SPACES[name].contains(action) for action in mapped)


def test_bounded_components_reach_both_ends_and_no_further() -> None:
    to_env = action_mapping(SPACES["skewed box"])
    mapped = to_env(np.array([[-1, -1], [1, 1], [0, 0], [-7, 9]], np.float32))
    assert mapped.tolist() == [[0, -5], [1, 3], [0.5, -1], [0, 3]]
    assert mapped.dtype == np.float32


def test_unbounded_components_are_taken_as_they_are() -> None:
    values = np.array([[-7.0, 9.0]], np.float32)
    assert action_mapping(SPACES["endless box"])(values).tolist() == [[-7, 9]]
    assert action_mapping(SPACES["half box"])(values).tolist() == [[0, 1]]
    double = action_mapping(SPACES["double box"])(np.array([[0.5, -2.0]], np.float32))
    assert double.tolist() == [[[1.0, -2.0]]]
    assert double.dtype == np.float64
