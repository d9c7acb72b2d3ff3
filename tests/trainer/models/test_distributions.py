"""Distributions against torch's own and against what they draw."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rltrain.models.distributions import Categorical, DiagonalGaussian, distribution_for
from rltrain.state import Array

N = 40_000


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def test_one_categorical_component_agrees_with_torch() -> None:
    params, actions = torch.randn(8, 5), torch.randint(5, (8,))
    ours, theirs = Categorical([5], scalar=True), torch.distributions.Categorical(logits=params)
    torch.testing.assert_close(ours.log_prob(params, actions), theirs.log_prob(actions))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours.entropy(params), theirs.entropy())  # type: ignore[no-untyped-call]


def test_categorical_draws_follow_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0])
    ours = Categorical([3], scalar=True)
    draws = ours.sample(logits.expand(N, 3), ours.noise(N, generator()))
    shares = torch.bincount(draws, minlength=3) / N
    torch.testing.assert_close(shares, logits.softmax(dim=0), atol=0.01, rtol=0)


def test_components_are_independent_and_their_log_probabilities_add() -> None:
    params = torch.randn(6, 5)
    ours = Categorical([2, 3], scalar=False)
    actions = ours.sample(params, ours.noise(6, generator()))
    assert actions.shape == (6, 2)
    first = torch.distributions.Categorical(logits=params[:, :2])
    second = torch.distributions.Categorical(logits=params[:, 2:])
    expected = first.log_prob(actions[:, 0]) + second.log_prob(actions[:, 1])  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours.log_prob(params, actions), expected)
    torch.testing.assert_close(ours.entropy(params), first.entropy() + second.entropy())  # type: ignore[no-untyped-call]
    assert ours.mode(params).tolist() == torch.stack([params[:, :2].argmax(1), params[:, 2:].argmax(1)], 1).tolist()


def test_the_gaussian_agrees_with_torch_and_draws_its_moments() -> None:
    params = torch.tensor([[1.0, -2.0, math.log(0.5), math.log(3.0)]])
    ours = DiagonalGaussian(2)
    theirs = torch.distributions.Normal(params[:, :2], params[:, 2:].exp())
    actions = torch.randn(7, 2)
    torch.testing.assert_close(ours.log_prob(params.expand(7, 4), actions), theirs.log_prob(actions).sum(dim=1))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours.entropy(params), theirs.entropy().sum(dim=1))  # type: ignore[no-untyped-call]
    draws = ours.sample(params.expand(N, 4), ours.noise(N, generator()))
    torch.testing.assert_close(draws.mean(dim=0), params[0, :2], atol=0.05, rtol=0)
    torch.testing.assert_close(draws.std(dim=0), params[0, 2:].exp(), atol=0.05, rtol=0)
    assert ours.mode(params).tolist() == [[1.0, -2.0]]


@pytest.mark.parametrize(
    ("space", "size", "shape"),
    [
        (spaces.Discrete(3), 3, (4,)),
        (spaces.MultiDiscrete([2, 3]), 5, (4, 2)),
        (spaces.MultiBinary(3), 6, (4, 3)),
        (spaces.Box(-1, 1, (2, 2)), 8, (4, 4)),
    ],
)
def test_a_space_decides_the_family(space: spaces.Space[Array], size: int, shape: tuple[int, ...]) -> None:
    family = distribution_for(space)
    assert family.size == size
    drawn = family.sample(torch.zeros(4, size), family.noise(4, generator())).numpy()
    assert drawn.shape == shape
    assert drawn.dtype == (np.float32 if isinstance(space, spaces.Box) else np.int64)
