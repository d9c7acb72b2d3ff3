"""CQL's losses term by term, their order, and its phases."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from rltrain.api.config import CQLConfig
from rltrain.policies.cql import CQL_STATS, LARGEST_FACTOR, CQLPolicy, actor_loss, penalty, td_errors
from rltrain.policies.sac import Rows
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.state import Array, content_hash
from trainer.policies.test_native import recorded
from trainer.policies.test_sac import BOX, OBS, SMALL, actor_outputs, batch, drawn, forward, q_taken, rows_of


def policy(**options: Any) -> CQLPolicy:
    config = CQLConfig(**{"input": "-", "model": SMALL, "lr": 1e-2, "bc_iters": 0, "num_actions": 3, **options})
    made = CQLPolicy(config, OBS, BOX, Seeds(0))
    made._target_flat.vector.mul_(-0.7)
    return made


def values(each: CQLPolicy, obs: Array, actions: Array, which: int) -> Array:
    q: Array = forward(each._network.critics, np.concatenate([obs, actions], axis=1), which)[:, 0]
    return q


def draws_of(each: CQLPolicy, count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(9)
    size = (count, each._config.num_actions, 2)
    return [torch.rand(size, generator=generator) * 2 - 1, *(torch.randn(size, generator=generator) for _ in range(2))]


def test_the_target_has_no_entropy_in_it_and_leaves_a_terminal_step_its_reward() -> None:
    each, rows = policy(), batch()
    actions, _ = drawn(each, rows[c.NEXT_OBS], rows_of(each, rows).next_noise.numpy())
    inputs = np.concatenate([rows[c.NEXT_OBS], actions], axis=1)
    lesser = np.minimum(*(forward(each._target, inputs, which)[:, 0] for which in (0, 1)))
    wanted = rows[c.REWARDS] + rows[c.DISCOUNTS] * lesser
    assert (rows[c.DISCOUNTS] == 0).any()
    _, errors = td_errors(each._network, each._target, rows_of(each, rows))
    np.testing.assert_allclose(errors.detach().numpy(), q_taken(each, rows) - wanted, atol=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_penalty_is_the_soft_maximum_less_the_data_s_values(temperature: float) -> None:
    each, rows = policy(), batch()
    uniform, next_noise, noise = (draw.numpy() for draw in draws_of(each, rows.count))
    expected = []
    for which in (0, 1):
        terms = []
        for k in range(3):
            terms.append(values(each, rows[c.OBS], uniform[:, k], which) - math.log(0.5**2))
            for at, eps in ((rows[c.NEXT_OBS], next_noise), (rows[c.OBS], noise)):
                actions, logp = drawn(each, at, eps[:, k])
                terms.append(values(each, rows[c.OBS], actions, which) - logp)
        soft = temperature * np.log(np.exp(np.stack(terms) / temperature).sum(axis=0))
        expected.append(soft.mean() - values(each, rows[c.OBS], rows[c.ACTIONS], which).mean())
    q = torch.from_numpy(q_taken(each, rows).astype(np.float32))
    found = penalty(each._network, rows_of(each, rows), q, draws_of(each, rows.count), temperature)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-4)


def test_the_penalty_moves_the_critics_alone() -> None:
    each, rows = policy(), batch()
    q = each._network.q_taken(*(torch.from_numpy(rows[name]) for name in (c.OBS, c.ACTIONS)))
    found = penalty(each._network, rows_of(each, rows), q, draws_of(each, rows.count), 1.0)
    parameters = dict(each._network.named_parameters())
    slopes = torch.autograd.grad(found.sum(), list(parameters.values()), allow_unused=True)
    assert {n.split(".")[0] for n, s in zip(parameters, slopes, strict=True) if s is not None} == {"critics"}


def test_the_actor_imitates_the_data_or_climbs_the_lesser_critic() -> None:
    each, rows = policy(initial_alpha=0.3), batch()
    obs = rows[c.OBS]
    actions, logp = drawn(each, obs, rows_of(each, rows).noise.numpy())
    mean, log_std = np.split(actor_outputs(each, obs).astype(np.float64), 2, axis=1)
    before = np.arctanh(rows[c.ACTIONS].astype(np.float64))
    normal = -0.5 * ((before - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    of_data = (normal - np.log(1 - rows[c.ACTIONS].astype(np.float64) ** 2)).sum(axis=1)
    lesser = np.minimum(*(values(each, obs, actions, which) for which in (0, 1)))
    for imitate, less in ((True, of_data), (False, lesser)):
        found = actor_loss(each._network, rows_of(each, rows), imitate=imitate)
        assert found.item() == pytest.approx((0.3 * logp - less).mean(), rel=1e-4)


def test_the_actor_imitates_for_bc_iters_updates_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    each, rows = policy(bc_iters=3), batch()
    phases: list[str] = []
    for name, learn in (("imitate", "_learn_imitating"), ("improve", "_learn_improving")):
        original = getattr(each, learn)

        def noted(*arguments: torch.Tensor, name: str = name, original: Any = original) -> Any:
            phases.append(name)
            return original(*arguments)

        monkeypatch.setattr(each, learn, noted)
    for _ in range(3):
        each.learn_on_batch(rows)
    restored = policy(bc_iters=3)
    restored.set_state(each.get_state())
    each.learn_on_batch(rows)
    assert phases == ["imitate"] * 3 + ["improve"]
    assert int(restored._adam.moments.step) == 3, "a resumed run goes on with the fourth"


def test_alpha_moves_first_then_the_actor_with_it_then_the_critics_with_the_actor() -> None:
    """The whole update again, each part by torch's own Adam, one after the other."""
    each, rows = policy(initial_alpha=0.5), batch()
    twin = policy(initial_alpha=0.5)
    twin.set_state(each.get_state())
    state = torch.Generator()
    state.set_state(twin._generator.get_state())
    size = (rows.count, 3, 2)
    uniform = torch.rand(size, generator=state) * 2 - 1
    noise = [torch.randn(size, generator=state) for _ in range(2)]
    own = [torch.randn((rows.count, 2), generator=state) for _ in range(2)]
    columns = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.DISCOUNTS, c.WEIGHTS)
    given = Rows(*(torch.from_numpy(rows[name]) for name in columns), *own)
    network = twin._network

    def step(part: torch.nn.Module, loss: torch.Tensor) -> None:
        parameters = list(part.parameters())
        slopes = torch.autograd.grad(loss, parameters)
        adam = torch.optim.Adam(parameters, lr=1e-2)
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope
        adam.step()

    with torch.no_grad():
        entropy = -network.choose(network.encoder(given.obs), given.noise).logp.mean()
    step(network.alpha, network.alpha.log * (entropy + 2))
    step(network.actor, actor_loss(network, given, imitate=False))
    q, errors = td_errors(network, twin._target, given)
    loss = (given.weights * errors.square()).mean(dim=1).sum()
    step(network.critics, loss + 5 * penalty(network, given, q, [uniform, *noise], 1.0).sum())

    each.learn_on_batch(rows)
    for name, weights in each.get_weights().items():
        np.testing.assert_allclose(weights, twin.get_weights()[name], atol=2e-5, err_msg=name)


@pytest.mark.parametrize(("threshold", "direction"), [(-1e6, 1), (1e6, -1)])
def test_the_lagrange_factor_grows_while_the_penalty_is_over_its_threshold(threshold: float, direction: int) -> None:
    each, rows = policy(lagrangian=True, lagrangian_thresh=threshold), batch()
    each.learn_on_batch(rows)
    factor = each.learn_on_batch(rows).stats["penalty_factor"]
    assert (factor - 1) * direction > 0


def test_the_lagrange_factor_is_clamped() -> None:
    each, rows = policy(lagrangian=True, lagrangian_thresh=0.0), batch()
    weights = each.get_weights()
    each.set_weights({**weights, "penalty_factor.log": np.full_like(weights["penalty_factor.log"], 50.0)})
    assert each.learn_on_batch(rows).stats["penalty_factor"] == LARGEST_FACTOR


def test_without_lagrangian_the_factor_stays_out_of_it() -> None:
    each, rows = policy(), batch()
    stats = each.learn_on_batch(rows).stats
    assert each.get_weights()["penalty_factor.log"] == 0
    assert stats["critic_loss"] == pytest.approx(stats["td_loss"] + 2 * stats["cql_penalty"], rel=1e-4)


def test_a_restored_policy_learns_on_as_the_saved_one() -> None:
    each, rows = policy(bc_iters=2), batch()
    each.learn_on_batch(rows)
    other = policy(bc_iters=2)
    other.set_state(each.get_state())
    for one in (each, other):
        for _ in range(2):
            one.learn_on_batch(rows)
            one.update_target()
    assert content_hash(each.get_state()) == content_hash(other.get_state())


def test_stats_are_told_by_name() -> None:
    stats = policy().learn_on_batch(batch()).stats
    assert set(CQL_STATS) <= stats.keys()
    assert all(math.isfinite(value) for value in stats.values())


@pytest.mark.parametrize(
    "options", [{}, {"bc_iters": 2}, {"lagrangian": True}], ids=["plain", "imitating", "lagrangian"]
)
def test_what_the_compiler_is_given_learns_the_same(options: dict[str, Any]) -> None:
    plain, traced, rows = policy(**options), policy(**options), batch()
    recorded(traced)
    for _ in range(3):
        for each in (plain, traced):
            each.learn_on_batch(rows)
            each.update_target()
    for name, weights in plain.get_weights().items():
        np.testing.assert_allclose(traced.get_weights()[name], weights, atol=1e-5, err_msg=name)
