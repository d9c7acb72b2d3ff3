"""DQN's targets, losses and exploration, against values worked out apart from it."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rltrain.api.config import DQNConfig, ExplorationConfig, ModelConfig
from rltrain.api.errors import CheckpointMismatch
from rltrain.policies.dqn import DQNPolicy
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, content_hash

OBS = spaces.Box(-1, 1, (3,))
SMALL = ModelConfig(fcnet_hiddens=(16,))
RNG = np.random.default_rng(0)


def policy(seed: int = 0, **options: Any) -> DQNPolicy:
    config = DQNConfig(model=SMALL, hiddens=(16,), **options)
    made = DQNPolicy(config, OBS, spaces.Discrete(4), Seeds(seed))
    # A target network unlike the online one, so that mixing them up shows.
    other = DQNPolicy(config, OBS, spaces.Discrete(4), Seeds(seed + 1))
    made._target_flat.set(other.get_weights())
    return made


def batch(count: int = 6) -> Batch:
    return Batch(
        {
            c.OBS: RNG.normal(size=(count, 3)).astype(np.float32),
            c.NEXT_OBS: RNG.normal(size=(count, 3)).astype(np.float32),
            c.ACTIONS: RNG.integers(4, size=count),
            c.REWARDS: RNG.normal(size=count).astype(np.float32) * 3,
            c.DISCOUNTS: np.where(np.arange(count) % 3 == 0, 0, 0.99).astype(np.float32),
            c.WEIGHTS: RNG.random(count).astype(np.float32),
        }
    )


def gradient(each: DQNPolicy) -> torch.Tensor:
    """The one that Adam was given in its first step, from its running mean."""
    assert float(each._adam.moments.step) == 1
    return each._adam.moments.mean / 0.1


def q_values(each: DQNPolicy, obs: Array, target: bool = False) -> Array:
    network = each._target if target else each._network
    with torch.no_grad():
        values: Array = network(torch.from_numpy(obs)).squeeze(2).numpy()
    return values


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("double_q", [True, False])
def test_td_errors_are_values_less_one_step_targets(double_q: bool, dueling: bool) -> None:
    each, rows = policy(double_q=double_q, dueling=dueling), batch()
    index = np.arange(rows.count)
    target_q = q_values(each, rows[c.NEXT_OBS], target=True)
    chooser = q_values(each, rows[c.NEXT_OBS]) if double_q else target_q
    target = rows[c.REWARDS] + rows[c.DISCOUNTS] * target_q[index, chooser.argmax(axis=1)]
    expected = q_values(each, rows[c.OBS])[index, rows[c.ACTIONS]] - target
    info = each.learn_on_batch(rows)
    assert info.td_error is not None
    np.testing.assert_allclose(info.td_error, expected, atol=1e-5)
    huber = np.where(np.abs(expected) < 1, expected**2 / 2, np.abs(expected) - 0.5)
    assert info.stats["loss"] == pytest.approx(float((rows[c.WEIGHTS] * huber).mean()), rel=1e-4)


def test_the_importance_weights_scale_each_row_s_part_of_the_gradient() -> None:
    rows = batch(2)
    gradients = []
    for weights in ([1, 0], [0, 1], [0.25, 0.5]):
        each = policy(grad_clip=None)
        each.learn_on_batch(rows.with_columns(**{c.WEIGHTS: np.array(weights, np.float32)}))
        gradients.append(gradient(each))
    torch.testing.assert_close(gradients[2], 0.25 * gradients[0] + 0.5 * gradients[1], rtol=1e-4, atol=1e-6)


def test_the_gradient_is_clipped_by_its_global_norm() -> None:
    each = policy(grad_clip=0.01)
    norm = each.learn_on_batch(batch()).stats["grad_norm"]
    assert norm > 0.01
    assert float(gradient(each).norm()) == pytest.approx(0.01, rel=1e-3)


def test_an_update_moves_as_torch_s_own_adam_on_the_same_loss() -> None:
    each, rows = policy(double_q=False, grad_clip=None, lr=1e-3), batch()
    twin = policy(double_q=False, grad_clip=None, lr=1e-3)
    parameters = list(twin._network.parameters())
    for parameter in parameters:
        parameter.grad = None
    adam = torch.optim.Adam(parameters, lr=1e-3, eps=1e-8)
    for _ in range(3):
        each.learn_on_batch(rows)
        index = torch.arange(rows.count)
        columns = {name: torch.from_numpy(column) for name, column in rows.columns.items()}
        best = twin._target(columns[c.NEXT_OBS]).squeeze(2).max(dim=1).values.detach()
        target = columns[c.REWARDS] + columns[c.DISCOUNTS] * best
        error = twin._network(columns[c.OBS]).squeeze(2)[index, columns[c.ACTIONS]] - target
        loss = columns[c.WEIGHTS] * torch.nn.functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")
        adam.zero_grad()
        loss.mean().backward()  # type: ignore[no-untyped-call]
        adam.step()
    for name, weights in each.get_weights().items():
        np.testing.assert_allclose(weights, dict(twin._network.named_parameters())[name].detach().numpy(), atol=1e-5)


def test_the_target_network_changes_only_when_it_is_updated() -> None:
    each = policy()
    before = content_hash(each.learned_state()["target"])
    each.learn_on_batch(batch())
    assert content_hash(each.learned_state()["target"]) == before
    each.update_target()
    assert content_hash(each.learned_state()["target"]) == content_hash(each.get_weights())


def test_without_exploration_the_best_action_is_taken() -> None:
    each, obs = policy(), batch(50)[c.OBS]
    actions, _ = each.compute_actions(obs, explore=False)
    np.testing.assert_array_equal(actions, q_values(each, obs).argmax(axis=1))


def test_epsilon_is_the_share_of_random_actions() -> None:
    exploration = ExplorationConfig(initial_epsilon=0.4, final_epsilon=0.4)
    each, obs = policy(exploration_config=exploration), batch(20_000)[c.OBS]
    best = q_values(each, obs).argmax(axis=1)
    actions, _ = each.compute_actions(obs, explore=True)
    assert np.mean(actions != best) == pytest.approx(0.4 * 3 / 4, abs=0.01)


def test_noise_explores_and_is_learnt_while_evaluation_acts_on_the_means() -> None:
    each, obs = policy(noisy=True, sigma0=2.0), batch(200)[c.OBS]
    first, second = (each.compute_actions(obs, explore=True)[0] for _ in range(2))
    assert (first != second).any()
    quiet = [each.compute_actions(obs, explore=False)[0].tolist() for _ in range(2)]
    assert quiet[0] == quiet[1]
    before = each.get_weights()
    each.learn_on_batch(batch())
    changed = [name for name, weights in each.get_weights().items() if (weights != before[name]).any()]
    assert any(name.endswith("weight_sigma") for name in changed)


def test_a_projected_distribution_keeps_its_mass_and_mean() -> None:
    each = policy(num_atoms=11, v_min=-5.0, v_max=5.0)
    rewards, discounts = torch.tensor([1.3, -0.7, 2.0]), torch.tensor([0.5, 0.25, 0.0])
    following = torch.rand(3, 11).softmax(dim=1)
    projected = each._project(rewards, discounts, following)
    torch.testing.assert_close(projected.sum(dim=1), torch.ones(3))
    mean = rewards + discounts * (following @ each._atoms)
    torch.testing.assert_close(projected @ each._atoms, mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(projected[2], torch.nn.functional.one_hot(torch.tensor(7), 11).float())


def test_returns_beyond_the_atoms_go_to_the_outermost_ones() -> None:
    each = policy(num_atoms=3, v_min=-1.0, v_max=1.0)
    projected = each._project(torch.tensor([9.0, -9.0]), torch.zeros(2), torch.full((2, 3), 1 / 3))
    torch.testing.assert_close(projected, torch.tensor([[0, 0, 1.0], [1.0, 0, 0]]))


def test_the_distributional_error_is_the_cross_entropy_and_falls_with_training() -> None:
    each = policy(num_atoms=21, lr=1e-2)
    # Rewards on an atom and nothing after them: the cross entropy can fall to 0.
    rows = batch().with_columns(**{c.REWARDS: np.arange(6, dtype=np.float32), c.DISCOUNTS: np.zeros(6, np.float32)})
    first = each.learn_on_batch(rows).td_error
    for _ in range(100):
        last = each.learn_on_batch(rows).td_error
    assert first is not None
    assert last is not None
    assert (first > 0).all()
    assert last.mean() < 0.1 * first.mean()


def test_read_only_arrays_are_learnt_from() -> None:
    rows = batch()
    for column in rows.columns.values():
        column.flags.writeable = False
    policy().learn_on_batch(rows)


def test_weights_of_another_network_are_refused_by_layer() -> None:
    each = policy()
    weights = each.get_weights()
    name = next(iter(weights))
    with pytest.raises(CheckpointMismatch, match=f"{name.replace('.', '[.]')} .*expected"):
        each.set_weights({**weights, name: np.zeros((1, 1), np.float32)})
    with pytest.raises(CheckpointMismatch, match="missing"):
        each.set_weights({key: value for key, value in weights.items() if key != name})
