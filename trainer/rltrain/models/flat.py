"""FlatParameters: a module's parameters as one vector, which optimizer, clipping and allreduce take at once."""

import torch
from torch import nn

from rltrain.api.errors import CheckpointMismatch
from rltrain.models.tensors import as_tensor
from rltrain.state import Array


class FlatParameters:
    """Moves a module's parameters into `vector` and their gradients into `gradient`, both float32 (size,)."""

    def __init__(self, module: nn.Module) -> None:
        named = list(module.named_parameters())
        first = named[0][1]
        self.size = sum(parameter.numel() for _, parameter in named)
        self.vector = torch.empty(self.size, device=first.device)
        self.gradient = torch.zeros(self.size, device=first.device)
        self._views: dict[str, torch.Tensor] = {}
        offset = 0
        for name, parameter in named:
            end = offset + parameter.numel()
            view = self.vector[offset:end].view_as(parameter)
            view.copy_(parameter.data)
            parameter.data = view
            parameter.grad = self.gradient[offset:end].view_as(parameter)
            self._views[name] = view
            offset = end

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
            raise CheckpointMismatch("the saved network is another one: " + "; ".join(wrong))
        for name, array in weights.items():
            self._views[name].copy_(as_tensor(array))
