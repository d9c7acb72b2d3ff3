"""Observations of several parts: packed into rows, and encoded part by part."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from probes.envs import SPACES
from rltrain.api.config import DDPPOConfig, ModelConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import UnsupportedSpace
from rltrain.models.packing import PackedBox, pack_space
from rltrain.models.spaces import ObsEncoder
from rltrain.policies.registry import check_spaces
from rltrain.rollout import columns as c
from rltrain.rollout.worker import RolloutWorker, WorkerSpec


def packed(name: str) -> PackedBox:
    space = pack_space(SPACES[name])
    assert space is not None
    return space


def test_a_row_has_each_parts_numbers_in_the_order_of_the_space() -> None:
    obs = {
        "image": np.full((9, 8, 2), 255, np.uint8),
        "pair": (np.int64(-1), np.array([[0.5], [-7.0]])),
        "bits": [1, 0],
    }
    row = packed("parts").pack(obs)
    # A Dict has its parts in the order of their names.
    assert row.dtype == np.float32
    assert (row[:2].tolist(), row[-3:].tolist()) == ([1, 0], [-1, 0.5, -7])
    assert (row[2:-3] == 255).all()
    assert packed("parts").contains(row)


def test_parts_of_bytes_alone_stay_bytes() -> None:
    space = packed("images")
    row = space.pack(SPACES["images"].sample())
    assert row.dtype == np.uint8
    assert row.shape == (7,)
    assert space.contains(row)


def test_each_part_is_encoded_as_by_itself() -> None:
    space = packed("parts")
    encoder = ObsEncoder(space)
    torch.manual_seed(0)
    samples: list[Any] = [space.whole.sample() for _ in range(3)]
    out = encoder(torch.from_numpy(np.stack([space.pack(sample) for sample in samples])))
    assert out.shape == (3, encoder.size)
    columns = [
        np.stack([sample["bits"] for sample in samples]),
        np.stack([sample["image"] for sample in samples]),
        np.stack([sample["pair"][0] for sample in samples]),
        np.stack([sample["pair"][1] for sample in samples]),
    ]
    assert encoder._parts is not None
    alone = [part(torch.from_numpy(column)) for part, column in zip(encoder._parts, columns, strict=True)]
    torch.testing.assert_close(out, torch.cat(alone, dim=1), rtol=1e-5, atol=1e-6)
    assert alone[0].tolist() == columns[0].tolist()
    assert alone[2].shape == (3, 3)
    assert any(isinstance(layer, torch.nn.Conv2d) for layer in encoder.modules()), "images among the parts are images"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bits": [1, 0, 1]}, "has the shape"),
        ({"bits": [2, 0]}, "isn't in"),
        ({"pair": (9, np.zeros((2, 1)))}, "isn't in"),
    ],
)
def test_a_part_that_is_not_as_its_space_says_is_refused(change: dict[str, Any], words: str) -> None:
    space = packed("parts")
    with pytest.raises(ValueError, match=words):
        space.pack({**space.whole.sample(), **change})


def test_a_packed_space_reads_and_travels_as_the_one_it_stands_for() -> None:
    space = packed("parts")
    assert repr(space) == repr(SPACES["parts"])
    assert pickle.loads(pickle.dumps(space)).ends == space.ends
    assert pack_space(SPACES["unit"]) is None
    assert pack_space(SPACES["text in a dict"]) is None


@pytest.mark.parametrize("obs", ["parts", "images", "dict", "tuple"])
def test_policies_learn_from_observations_of_several_parts(obs: str) -> None:
    config = DDPPOConfig(
        model=ModelConfig(fcnet_hiddens=(8,)), rollout_fragment_length=20, sgd_minibatch_size=10, num_sgd_iter=1
    )
    worker = RolloutWorker(WorkerSpec("DDPPO", EnvSpec(id="probes.envs:Spaces", kwargs={"obs": obs}), config, seed=0))
    batch = worker.sample()
    assert batch[c.OBS].shape == (100, packed(obs).shape[0])
    assert all(np.isfinite(number) for number in worker.policy.learn_on_batch(batch).stats.values())


def test_filters_are_checked_against_the_images_among_the_parts() -> None:
    config = DDPPOConfig(model=ModelConfig(conv_filters=((4, 3, 1),)))
    check_spaces("DDPPO", config, packed("parts"), spaces.Discrete(2))
    wide = DDPPOConfig(model=ModelConfig(conv_filters=((4, 9, 1),)))
    with pytest.raises(UnsupportedSpace, match="kernel of 9"):
        check_spaces("DDPPO", wide, packed("parts"), spaces.Discrete(2))
