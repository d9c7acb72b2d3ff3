"""What the compiler is given in place of an operator computes the same."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from rltrain.compiled.rewriting import REWRITTEN, addmm, mm, tanh

FEW, MANY = 3, 40


def test_tanh_is_right_to_1e_7_over_its_range() -> None:
    x = torch.cat([torch.linspace(-20, 20, 10_001), torch.tensor([-1e30, 1e30, float("inf"), -float("inf")])])
    torch.testing.assert_close(tanh(x), torch.tanh(x), rtol=0, atol=2e-7)
    assert torch.isnan(tanh(torch.tensor(float("nan"))))


@pytest.mark.parametrize(("m", "k", "n"), [(MANY, MANY, FEW), (1, MANY, MANY), (1, FEW, MANY)])
def test_a_layer_with_a_short_side_is_summed_and_the_same(m: int, k: int, n: int) -> None:
    bias, a, weights = torch.randn(n), torch.randn(m, k), torch.randn(n, k)
    torch.testing.assert_close(mm(a, weights.t()), a @ weights.t())
    torch.testing.assert_close(addmm(bias, a, weights.t()), functional.linear(a, weights, bias))


def test_other_products_are_left_to_the_library() -> None:
    a, b = torch.randn(MANY, MANY), torch.randn(MANY, MANY)
    assert mm(a, b.t()) is NotImplemented
    assert mm(a[:1], b) is NotImplemented, "summed over what doesn't lie together it would be slower"
    assert addmm(torch.ones(FEW), a, b.t()[:, :FEW], beta=2.0) is NotImplemented


def test_gradients_are_rewritten_as_well() -> None:
    def slope(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        weights = weights.detach().requires_grad_()
        return torch.autograd.grad(functional.linear(x, weights).tanh().sum(), [weights])[0]

    x, weights = torch.randn(MANY, FEW), torch.randn(MANY, FEW)
    graph = make_fx(slope, decomposition_table=REWRITTEN)(x, weights)
    assert "tanh.default" not in graph.code
    torch.testing.assert_close(graph(x, weights), slope(x, weights))
