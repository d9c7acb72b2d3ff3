"""The tanh-squashed Gaussian against numeric integration and its own draws."""

import numpy as np
import pytest
import torch

from rltrain.models.distributions import SquashedGaussian
from rltrain.state import Array

N = 40_000


def squashed_density(mean: float, log_std: float) -> tuple[Array, Array]:
    """The density of SquashedGaussian on a fine grid of (-1, 1)."""
    grid = np.linspace(-1, 1, 200_001)[1:-1]
    params = torch.tensor([[mean, log_std]]).expand(len(grid), 2)
    logp = SquashedGaussian(1).log_prob(params, torch.from_numpy(grid[:, None].astype(np.float32)))
    return grid, np.exp(logp.numpy().astype(np.float64))


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.0), (-1.0, 0.2)])
def test_a_squashed_density_integrates_to_1_and_has_the_draws_moments(mean: float, log_std: float) -> None:
    grid, density = squashed_density(mean, log_std)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=2e-3)
    ours = SquashedGaussian(1)
    draws = ours.sample(torch.tensor([[mean, log_std]]).expand(N, 2), ours.noise(N, torch.Generator().manual_seed(1)))
    assert np.trapezoid(density * grid, grid) == pytest.approx(float(draws.mean()), abs=0.01)
    assert np.trapezoid(density * grid**2, grid) == pytest.approx(float(draws.square().mean()), abs=0.01)


def test_a_squashed_draws_log_probability_is_that_of_its_action() -> None:
    draws = torch.Generator().manual_seed(2)
    ours, params = SquashedGaussian(2), 0.5 * torch.randn(50, 4, generator=draws)
    actions, logp = ours.transform(params, 0.5 * torch.randn(50, 2, generator=draws))
    torch.testing.assert_close(ours.log_prob(params, actions), logp, rtol=1e-3, atol=1e-3)


def test_squashed_log_probabilities_and_slopes_stay_finite_far_out() -> None:
    params = torch.tensor([[40.0, 9.0], [-40.0, -99.0]], requires_grad=True)
    actions, logp = SquashedGaussian(1).transform(params, torch.tensor([[3.0], [-3.0]]))
    logp.sum().backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(logp).all()
    assert params.grad is not None
    assert torch.isfinite(params.grad).all()
    assert actions.abs().max() == 1
    assert torch.isfinite(SquashedGaussian(1).log_prob(params, torch.tensor([[1.0], [-1.0]]))).all()
