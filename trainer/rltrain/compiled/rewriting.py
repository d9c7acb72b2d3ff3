"""Operators as the compiler is given them: in terms that it can fuse, where what it would call itself is slower."""

from collections.abc import Callable
from typing import Any, Final

import torch

_FEW: Final = 4


def tanh(x: torch.Tensor) -> torch.Tensor:
    """By an exponential, which takes a quarter of the vectorised library's time; right to 1e-7."""
    return 1 - 2 / ((2 * x).exp() + 1)


def mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(m, k) by (k, n), as a sum where a side is so short that the library's call costs more than its work.

    Not where k is: a sum of so few is taken into what follows it, an activation as a rule, which isn't vectorised then.
    """
    m, n = a.shape[0], b.shape[1]
    if b.stride(0) == 1 and (n <= _FEW or m == 1):
        return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1)
    not_rewritten: torch.Tensor = NotImplemented
    return not_rewritten


def addmm(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **scales: float) -> torch.Tensor:
    """A layer: see `mm`."""
    product = NotImplemented if scales else mm(a, b)
    return product if product is NotImplemented else product + bias


_aten: Any = torch.ops.aten
REWRITTEN: Final[dict[Any, Callable[..., torch.Tensor]]] = {
    _aten.tanh.default: tanh,
    _aten.mm.default: mm,
    _aten.addmm.default: addmm,
}
