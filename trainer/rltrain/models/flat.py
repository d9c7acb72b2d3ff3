"""FlatParameters: a module's parameters as one vector, which optimizer, clipping and allreduce take at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from rltrain.api.errors import CheckpointMismatch
from rltrain.models.tensors import as_tensor
from rltrain.state import Array


class FlatParameters:
    """Moves a module's parameters into `vector` and their gradients into `gradient`, both float32 (size,)."""

    def __init__(self, module: nn.Module) -> None:
        self._owners = [
            (owner, name) for owner in module.modules() for name, _ in owner.named_parameters(recurse=False)
        ]
        self._parameters = [owner.get_parameter(name) for owner, name in self._owners]
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        self._sizes = [parameter.numel() for parameter in self._parameters]
        self.size = sum(self._sizes)
        self.vector = torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        self.gradient = torch.zeros_like(self.vector)
        views = self._split(self.vector)
        for parameter, view, slope in zip(self._parameters, views, self._split(self.gradient), strict=True):
            parameter.data, parameter.grad = view, slope
        self._views = {names[id(parameter)]: view for parameter, view in zip(self._parameters, views, strict=True)}

    @contextmanager
    def at(self, vector: torch.Tensor) -> Iterator[Sequence[torch.Tensor]]:
        """The module computes with the values in `vector` meanwhile.

        So a function that is traced depends on the vector that it is given, not on this one.

        Returns:
            The module's parameters, to differentiate by: see `gradient`.
        """
        if vector is self.vector:
            yield self._parameters
            return
        leaves = [view.detach().requires_grad_() for view in self._split(vector)]
        try:
            for (owner, name), leaf in zip(self._owners, leaves, strict=True):
                owner._parameters[name] = leaf  # type: ignore[assignment]  # only a Parameter may be set by name
            yield leaves
        finally:
            for (owner, name), parameter in zip(self._owners, self._parameters, strict=True):
                owner._parameters[name] = parameter

    def get(self) -> dict[str, Array]:
        """Copies by parameter name."""
        return {name: view.cpu().numpy().copy() for name, view in self._views.items()}

    def set(self, weights: dict[str, Array]) -> None:
        """Take over values by parameter name.

        Raises:
            CheckpointMismatch: names or shapes are of another network; nothing is changed then.
        """
        mine = {name: tuple(view.shape) for name, view in self._views.items()}
        given = {name: tuple(array.shape) for name, array in weights.items()}
        if mine != given:
            wrong = sorted(
                f"{name} {given.get(name, 'missing')}, expected {mine.get(name, 'none')}"
                for name in mine.keys() | given.keys()
                if mine.get(name) != given.get(name)
            )
            raise CheckpointMismatch(
                "the saved network is another one: set its options back, or start in another run directory "
                f"({'; '.join(wrong)})"
            )
        for name, array in weights.items():
            self._views[name].copy_(as_tensor(array))

    def _split(self, vector: torch.Tensor) -> list[torch.Tensor]:
        parts = torch.split(vector, self._sizes)
        return [part.view_as(like) for part, like in zip(parts, self._parameters, strict=True)]


def gradient(loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """The loss's gradient by what `FlatParameters.at` gave, as one vector."""
    return torch.cat([each.reshape(-1) for each in torch.autograd.grad(loss, list(parameters))])
