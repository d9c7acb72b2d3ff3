"""Images of any size and type go through convolutions, which every policy's loss reaches."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rltrain.api.config import DDPPOConfig, DQNConfig, ModelConfig, PlanConfig, R2D2Config, SACConfig
from rltrain.api.config.r2d2 import RecurrentModelConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import UnsupportedSpace
from rltrain.models.soft_actor_critic import DiscreteActorCritic
from rltrain.models.spaces import ObsEncoder
from rltrain.models.vision import filters_for
from rltrain.policies.registry import check_spaces
from rltrain.policies.sac import Rows, sac_losses
from rltrain.replay.make import make_buffer
from rltrain.rollout.worker import RolloutWorker, WorkerSpec


def image(height: int, width: int, channels: int = 3) -> spaces.Box:
    return spaces.Box(0, 255, (height, width, channels), np.uint8)


@pytest.mark.parametrize(
    ("shape", "layers", "size"),
    [((84, 84, 4), 3, 64 * 7 * 7), ((36, 200, 1), 3, 64 * 1 * 21), ((16, 16, 3), 3, 32 * 2 * 2), ((10, 8, 6), 2, 192)],
)
def test_filters_follow_from_the_image_s_size(shape: tuple[int, ...], layers: int, size: int) -> None:
    space = image(*shape)
    assert len(filters_for(space, None)) == layers
    encoder = ObsEncoder(space)
    assert encoder.size == size
    assert encoder(torch.from_numpy(space.sample()[None])).shape == (1, size)


def test_every_image_from_8_pixels_on_fits_its_filters() -> None:
    for side in range(8, 100):
        assert ObsEncoder(image(side, 100)).size > 0


@pytest.mark.parametrize("space", [image(4, 50), spaces.Box(-1, 1, (84, 84), np.float32), image(84, 84)])
def test_what_is_no_image_or_has_no_filters_is_flattened(space: spaces.Box) -> None:
    encoder = ObsEncoder(space, () if space.shape[0] == 84 else None)
    assert encoder.size == np.prod(space.shape)
    assert not list(encoder.parameters())


def test_bytes_are_fractions_and_rows_columns_and_channels_stay_in_place() -> None:
    space = image(8, 9, 2)
    encoder = ObsEncoder(space, ((1, 3, 2),))
    convolution = next(layer for layer in encoder.modules() if isinstance(layer, torch.nn.Conv2d))
    with torch.no_grad():
        convolution.bias.zero_()  # type: ignore[union-attr]
        convolution.weight.zero_()
        convolution.weight[0, 1, 2, 0] = 1  # of each window: the third row, first column, second channel
    obs = np.random.default_rng(0).integers(256, size=(2, 8, 9, 2), dtype=np.uint8)
    expected = obs[:, 2:8:2, 0:7:2, 1].reshape(2, -1) / 255
    np.testing.assert_allclose(encoder(torch.from_numpy(obs)).detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("space", "filters", "words"),
    [
        (image(20, 20), ((8, 8, 4), (8, 5, 1)), r"layer 1 has a kernel of 5, but what reaches it has 4x4 pixels"),
        (spaces.Box(-1, 1, (4,), np.float32), ((8, 3, 1),), r"are for images .*leave them out"),
    ],
)
def test_filters_that_do_not_fit_are_refused_before_anything_is_made(
    space: spaces.Box, filters: tuple[tuple[int, int, int], ...], words: str
) -> None:
    config = DQNConfig(model=ModelConfig(conv_filters=filters))
    with pytest.raises(UnsupportedSpace, match=words):
        check_spaces("DQN", config, space, spaces.Discrete(2))


SMALL: dict[str, Any] = {"rollout_fragment_length": 40, "train_batch_size": 20, "learning_starts": 10}
MODEL = ModelConfig(fcnet_hiddens=(8,))
CONFIGS: dict[str, PlanConfig] = {
    "DQN": DQNConfig(model=MODEL, hiddens=(), **SMALL),
    "DDPPO": DDPPOConfig(model=MODEL, rollout_fragment_length=40, sgd_minibatch_size=20, num_sgd_iter=1),
    "SAC": SACConfig(policy="SAC", model=MODEL, **SMALL),
    "R2D2": R2D2Config(policy="R2D2", model=RecurrentModelConfig(lstm_cell_size=8, max_seq_len=5), **SMALL),
}


@pytest.mark.parametrize("space", [image(9, 8), spaces.Box(-1, 1, (9, 8, 2), np.float32)], ids=["bytes", "floats"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_policy_learns_its_convolutions(name: str, space: spaces.Box) -> None:
    config = CONFIGS[name]
    plan = name if name in ("DQN", "DDPPO") else "OffPolicy"
    env = EnvSpec(id="probes.envs:Spaces", kwargs={"obs": space})
    worker = RolloutWorker(WorkerSpec(plan, env, config, seed=0))
    batch = worker.sample()
    if plan != "DDPPO":
        buffer = make_buffer(config, seed=0)  # type: ignore[arg-type]
        buffer.add(batch)
        replayed = buffer.sample(20)
        assert replayed is not None
        batch = replayed
    before = worker.get_weights()
    worker.policy.learn_on_batch(batch)
    after = worker.get_weights()
    convolutions = [layer for layer, weights in before.items() if weights.ndim == 4]
    assert len(convolutions) == 2
    assert all((after[layer] != before[layer]).any() for layer in convolutions)


def test_sac_s_actor_leaves_the_encoder_to_the_critics() -> None:
    space, actions = image(9, 8), spaces.Discrete(2)
    network = DiscreteActorCritic(SACConfig(policy="SAC"), MODEL, space, actions)
    obs, numbers, nothing = torch.randint(256, (2, 9, 8, 3), dtype=torch.uint8), torch.ones(2), torch.zeros(2, 0)
    rows = Rows(obs, torch.tensor([0, 1]), numbers, obs, numbers, numbers, nothing, nothing)
    losses = sac_losses(network, network.critics, rows, target_entropy=0.5)
    encoder = list(network.encoder.parameters())
    by_actor = torch.autograd.grad(losses.actor, encoder, retain_graph=True, allow_unused=True)
    by_critics = torch.autograd.grad(losses.critics, encoder)
    assert by_actor == (None,) * len(encoder)
    assert all(slope.abs().sum() > 0 for slope in by_critics)
