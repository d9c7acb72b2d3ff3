"""Function: a tensor function that runs as native code once that is there."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import torch

Argument: TypeAlias = torch.Tensor | None
Signature: TypeAlias = tuple[tuple[torch.Size, torch.dtype] | None, ...]
"""Shape and dtype of each argument; None for one that is left out."""
Native: TypeAlias = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]
"""Compiled code for one signature, called with the arguments that aren't left out."""


class Compiler(Protocol):
    """Runs functions for which there is no native code, and has some made where that pays."""

    def run(self, function: "Function", signature: Signature, arguments: Sequence[Argument]) -> Sequence[torch.Tensor]:
        """The function's outcome; `function.native` may have the signature afterwards."""


class Function:
    """A function of tensors on the CPU.

    It may change its arguments in place, and must depend on nothing else but constants: no random numbers, no
    attributes that change, no branch on a value.

    Args:
        function: takes tensors or None and returns a tuple of tensors.

    Attributes:
        compiler: who brings native code; without one the function runs as it is.
        native: code by signature.
    """

    def __init__(self, function: Callable[..., tuple[torch.Tensor, ...]]) -> None:
        self.function = function
        self.name = function.__name__.strip("_")
        self.compiler: Compiler | None = None
        self.native: dict[Signature, Native] = {}

    def __call__(self, *arguments: Argument) -> Sequence[Any]:
        if self.compiler is None:
            return self.function(*arguments)
        signature = tuple([None if each is None else (each.shape, each.dtype) for each in arguments])
        native = self.native.get(signature)
        if native is None:
            return self.compiler.run(self, signature, arguments)
        return native(given(arguments))


def given(arguments: Sequence[Argument]) -> list[torch.Tensor]:
    """The arguments that aren't left out, as native code expects them."""
    return [each.contiguous() for each in arguments if each is not None]
