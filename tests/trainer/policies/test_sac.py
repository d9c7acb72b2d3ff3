"""SAC's losses, targets and exploration, against values worked out apart from it."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rltrain.api.config import ModelConfig, SACConfig
from rltrain.models.soft_actor_critic import DiscreteActorCritic
from rltrain.policies.sac import Losses, Rows, SACPolicy, SoftPolicy, sac_losses
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, content_hash
from trainer.policies.test_native import recorded

OBS = spaces.Box(-1, 1, (3,))
BOX = spaces.Box(np.array([0.0, -5.0], np.float32), np.array([1.0, 3.0], np.float32))
DISCRETE = spaces.Discrete(4)
SMALL = ModelConfig(fcnet_hiddens=(16, 16), fcnet_activation="relu")
SPACES = pytest.mark.parametrize("space", [BOX, DISCRETE], ids=["box", "discrete"])


def policy(space: spaces.Box | spaces.Discrete = BOX, **options: Any) -> SACPolicy:
    config = SACConfig(**{"policy": "SAC", "model": SMALL, "lr": 1e-2, "learning_starts": 0, **options})
    made = SACPolicy(config, OBS, space, Seeds(0))
    # Target critics unlike the own ones, so that mixing them up shows.
    made._target_flat.vector.mul_(-0.7)
    return made


def batch(space: spaces.Box | spaces.Discrete = BOX, count: int = 6) -> Batch:
    rng = np.random.default_rng(0)
    discrete = isinstance(space, spaces.Discrete)
    return Batch(
        {
            c.OBS: rng.normal(size=(count, 3)).astype(np.float32),
            c.NEXT_OBS: rng.normal(size=(count, 3)).astype(np.float32),
            c.ACTIONS: rng.integers(4, size=count) if discrete else rng.uniform(-1, 1, (count, 2)).astype(np.float32),
            c.REWARDS: rng.normal(size=count).astype(np.float32) * 3,
            c.DISCOUNTS: np.where(np.arange(count) % 3 == 0, 0, 0.99).astype(np.float32),
            c.WEIGHTS: rng.random(count).astype(np.float32),
        }
    )


def rows_of(each: SoftPolicy[Any], rows: Batch) -> Rows:
    columns = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.DISCOUNTS, c.WEIGHTS)
    generator = torch.Generator().manual_seed(5)
    size = (rows.count, each._network.noise_size)
    noise = [torch.randn(size, generator=generator) for _ in range(2)]
    return Rows(*(torch.from_numpy(rows[name]) for name in columns), *noise)


def losses(each: SACPolicy, rows: Batch) -> Losses:
    return sac_losses(each._network, each._target, rows_of(each, rows), each._target_entropy)


def forward(network: Any, x: Array, which: int) -> Array:
    """One of the two critics, layer by layer in NumPy."""
    for layer in range(3):
        weight = getattr(network, f"weight{layer}").detach().numpy()[which]
        bias = getattr(network, f"bias{layer}").detach().numpy()[which]
        x = x @ weight + bias
        x = np.maximum(x, 0) if layer < 2 else x
    return x


def actor_outputs(each: SoftPolicy[Any], obs: Array) -> Array:
    with torch.no_grad():
        outputs: Array = each._network.actor(torch.from_numpy(obs)).numpy()
    return outputs


def drawn(each: SoftPolicy[Any], obs: Array, noise: Array) -> tuple[Array, Array]:
    """Actions and log-probabilities of the squashed Gaussian, in float64 and by the plain formula."""
    mean, log_std = np.split(actor_outputs(each, obs).astype(np.float64), 2, axis=1)
    u = mean + np.exp(log_std) * noise
    normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    return np.tanh(u), (normal - np.log(1 - np.tanh(u) ** 2)).sum(axis=1)


def targets(each: SoftPolicy[Any], rows: Batch) -> Array:
    """r + discount * E[min Q_target - alpha log pi] at the next observation."""
    alpha, next_obs = each.exploration_state()["alpha"], rows[c.NEXT_OBS]
    if isinstance(each._network, DiscreteActorCritic):
        logits = actor_outputs(each, next_obs).astype(np.float64)
        logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        lesser = np.minimum(*(forward(each._target, next_obs, which) for which in (0, 1)))
        value = (np.exp(logp) * (lesser - alpha * logp)).sum(axis=1)
    else:
        actions, logp = drawn(each, next_obs, rows_of(each, rows).next_noise.numpy())
        inputs = np.concatenate([next_obs, actions], axis=1)
        value = np.minimum(*(forward(each._target, inputs, which)[:, 0] for which in (0, 1))) - alpha * logp
    wanted: Array = rows[c.REWARDS] + rows[c.DISCOUNTS] * value
    return wanted


def q_taken(each: SoftPolicy[Any], rows: Batch) -> Array:
    critics, obs, actions = each._network.critics, rows[c.OBS], rows[c.ACTIONS]
    if isinstance(each._network, DiscreteActorCritic):
        return np.stack([forward(critics, obs, which)[np.arange(rows.count), actions] for which in (0, 1)])
    return np.stack([forward(critics, np.concatenate([obs, actions], axis=1), which)[:, 0] for which in (0, 1)])


@SPACES
def test_the_critics_learn_the_lesser_target_value_with_its_entropy(space: spaces.Box | spaces.Discrete) -> None:
    each, rows = policy(space, initial_alpha=0.3), batch(space)
    errors = q_taken(each, rows) - targets(each, rows)
    found = losses(each, rows)
    expected = 0.5 * (rows[c.WEIGHTS] * errors**2).mean(axis=1).sum()
    assert found.critics.item() == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(found.td_error.numpy(), np.abs(errors).mean(axis=0), atol=1e-4)


def test_a_terminal_step_learns_its_reward_alone_and_a_truncated_one_bootstraps() -> None:
    each = policy()
    flags = Batch(
        {
            **{name: batch(count=2)[name] for name in (c.OBS, c.NEXT_OBS, c.ACTIONS, c.REWARDS)},
            c.TERMINATEDS: np.array([True, False]),
            c.TRUNCATEDS: np.array([True, True]),
            c.ENV_ID: np.zeros(2, np.int64),
        }
    )
    rows = each.postprocess(flags).with_columns(**{c.WEIGHTS: np.ones(2, np.float32)})
    errors = np.abs(q_taken(each, rows) - targets(each, rows)).mean(axis=0)
    alone = np.abs(q_taken(each, rows) - flags[c.REWARDS]).mean(axis=0)
    found = losses(each, rows).td_error.numpy()
    np.testing.assert_allclose(found, errors, atol=1e-4)
    assert found[0] == pytest.approx(alone[0], abs=1e-4)
    assert abs(found[1] - alone[1]) > 1e-2


@SPACES
def test_the_actor_weighs_entropy_against_the_lesser_critic_and_moves_nothing_else(
    space: spaces.Box | spaces.Discrete,
) -> None:
    each, rows = policy(space, initial_alpha=0.3), batch(space)
    obs = rows[c.OBS]
    if isinstance(space, spaces.Discrete):
        logits = actor_outputs(each, obs).astype(np.float64)
        logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        lesser = np.minimum(*(forward(each._network.critics, obs, which) for which in (0, 1)))
        expected = (np.exp(logp) * (0.3 * logp - lesser)).sum(axis=1).mean()
    else:
        actions, logp = drawn(each, obs, rows_of(each, rows).noise.numpy())
        inputs = np.concatenate([obs, actions], axis=1)
        lesser = np.minimum(*(forward(each._network.critics, inputs, which)[:, 0] for which in (0, 1)))
        expected = (0.3 * logp - lesser).mean()
    found = losses(each, rows)
    assert found.actor.item() == pytest.approx(expected, rel=1e-4)
    parameters = dict(each._network.named_parameters())
    for loss, part in ((found.actor, "actor"), (found.critics, "critics"), (found.alpha, "alpha")):
        slopes = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, retain_graph=True)
        moved = {name.split(".")[0] for name, slope in zip(parameters, slopes, strict=True) if slope is not None}
        assert moved == {part}


@pytest.mark.parametrize(("target_entropy", "direction"), [(50.0, 1), (-50.0, -1)])
def test_alpha_grows_while_there_is_too_little_entropy_and_falls_while_there_is_too_much(
    target_entropy: float, direction: int
) -> None:
    each = policy(target_entropy=target_entropy, initial_alpha=0.5)
    each.learn_on_batch(batch())
    assert (each.exploration_state()["alpha"] - 0.5) * direction > 0


def test_target_entropies_follow_from_the_action_space() -> None:
    assert policy(BOX)._target_entropy == -2
    assert policy(DISCRETE)._target_entropy == pytest.approx(0.98 * math.log(4))
    assert policy(BOX, target_entropy=-0.5)._target_entropy == -0.5


def test_alpha_begins_at_1() -> None:
    assert policy().exploration_state()["alpha"] == 1.0


def test_an_update_of_the_target_moves_its_critics_by_tau() -> None:
    each = policy(tau=0.25)
    own = {name: weights for name, weights in each.get_weights().items() if name.startswith("critics.")}
    before = each.learned_state()["target"]
    each.update_target()
    after = each.learned_state()["target"]
    assert after.keys() == {name.removeprefix("critics.") for name in own}
    for name, weights in own.items():
        short = name.removeprefix("critics.")
        np.testing.assert_allclose(after[short], 0.75 * before[short] + 0.25 * weights, atol=1e-6)


def test_the_target_begins_as_the_critics() -> None:
    fresh = SACPolicy(SACConfig(policy="SAC", model=SMALL), OBS, BOX, Seeds(0))
    own = {name.removeprefix("critics."): w for name, w in fresh.get_weights().items() if name.startswith("critics.")}
    assert content_hash(fresh.learned_state()["target"]) == content_hash(own)


def test_the_two_critics_begin_apart_and_stay_apart() -> None:
    each, rows = policy(), batch()
    for _ in range(3):
        first, second = q_taken(each, rows)
        assert np.abs(first - second).max() > 1e-3
        each.learn_on_batch(rows)


@SPACES
def test_the_first_actions_are_uniformly_random_and_cover_the_space(space: spaces.Box | spaces.Discrete) -> None:
    each = policy(space, learning_starts=100)
    obs = np.zeros((4000, 3), np.float32)
    actions, _ = each.compute_actions(obs, explore=True)
    if isinstance(space, spaces.Discrete):
        assert (np.bincount(actions, minlength=4) > 900).all()
    else:
        assert actions.dtype == np.float32
        assert actions.shape == (4000, 2)
        assert (actions.min(), actions.max()) == (pytest.approx(-1, abs=2e-3), pytest.approx(1, abs=2e-3))
        np.testing.assert_allclose(np.quantile(actions, [0.25, 0.5, 0.75], axis=0).T, [[-0.5, 0, 0.5]] * 2, atol=0.05)
    each.set_global_step(100)
    again, _ = each.compute_actions(obs, explore=True)
    assert (again != actions).any()


@SPACES
def test_the_best_action_neither_varies_nor_draws(space: spaces.Box | spaces.Discrete) -> None:
    each, obs = policy(space, learning_starts=100), batch()[c.OBS]
    before = content_hash(each.get_state())
    first, _ = each.compute_actions(obs, explore=False)
    second, _ = each.compute_actions(obs, explore=False)
    np.testing.assert_array_equal(first, second)
    outputs = actor_outputs(each, obs)
    best = outputs.argmax(axis=1) if isinstance(space, spaces.Discrete) else np.tanh(outputs[:, :2])
    np.testing.assert_allclose(first, best, atol=1e-6)
    assert content_hash(each.get_state()) == before


@SPACES
def test_a_restored_policy_learns_and_acts_on_as_the_saved_one(space: spaces.Box | spaces.Discrete) -> None:
    each, rows = policy(space), batch(space)
    each.learn_on_batch(rows)
    other = policy(space)
    other.set_state(each.get_state())
    for one in (each, other):
        one.learn_on_batch(rows)
        one.update_target()
    first, second = (one.compute_actions(rows[c.OBS], explore=True)[0] for one in (each, other))
    np.testing.assert_array_equal(first, second)
    assert content_hash(each.get_state()) == content_hash(other.get_state())


def test_stats_tell_alpha_entropy_values_and_losses() -> None:
    stats = policy().learn_on_batch(batch()).stats
    assert {"alpha", "entropy", "mean_q", "min_q", "max_q", "actor_loss", "critic_loss", "alpha_loss"} <= stats.keys()
    assert all(math.isfinite(value) for value in stats.values())


@SPACES
def test_what_the_compiler_is_given_learns_the_same(space: spaces.Box | spaces.Discrete) -> None:
    plain, traced, rows = policy(space), policy(space), batch(space)
    recorded(traced)
    for _ in range(3):
        for each in (plain, traced):
            each.learn_on_batch(rows)
            each.update_target()
    for name, weights in plain.get_weights().items():
        np.testing.assert_allclose(traced.get_weights()[name], weights, atol=1e-5, err_msg=name)
