"""Adam (Kingma & Ba 2015) on one flat vector."""

from typing import Final, NamedTuple

import torch

from rltrain.api.errors import CheckpointMismatch
from rltrain.compiled.tracing import is_traced
from rltrain.models.flat import FlatParameters
from rltrain.models.tensors import as_tensor
from rltrain.state import Array

_BETA1: Final = 0.9
_BETA2: Final = 0.999


class Moments(NamedTuple):
    """What Adam remembers: the number of steps, float32 (), and running moments, float32 (size,)."""

    step: torch.Tensor
    mean: torch.Tensor
    square: torch.Tensor


class Adam:
    """Moments of a parameter vector, and their saving.

    Args:
        parameters: what is moved.
        epsilon: added to the root of the second moment.
        clip: largest norm of a gradient, or None.
    """

    def __init__(self, parameters: FlatParameters, epsilon: float, clip: float | None = None) -> None:
        self._vector, self._gradient = parameters.vector, parameters.gradient
        self._epsilon, self._clip = epsilon, clip
        zero = torch.zeros_like(self._vector)
        self.moments = Moments(torch.zeros((), device=zero.device), zero, zero.clone())
        self._lr = torch.zeros((), device=zero.device)

    def step(self, lr: float) -> torch.Tensor:
        """Move the vector by its gradient, which is clipped in place; returns the norm before clipping."""
        return self.descend(self._vector, self.moments, self._gradient, self._lr.fill_(lr))

    def descend(self, vector: torch.Tensor, moments: Moments, gradient: torch.Tensor, lr: torch.Tensor) -> torch.Tensor:
        """Move `vector` and `moments`, in place and depending on nothing else, so that it can be traced.

        Args:
            vector: float32 (size,).
            gradient: float32 (size,); clipped in place.
            lr: float32 ().

        Returns:
            The gradient's norm before clipping, float32 ().
        """
        norm: torch.Tensor = torch.linalg.vector_norm(gradient)
        if self._clip is not None:
            gradient.mul_((self._clip / (norm + 1e-6)).clamp_(max=1.0))
        moments.step.add_(1)
        step = _plain if is_traced() else _fused
        step(vector, moments, gradient, lr, self._epsilon)
        return norm

    def get(self) -> dict[str, Array]:
        """Copies of the moments, by name."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self.moments._asdict().items()}

    def set(self, state: dict[str, Array]) -> None:
        """Take over saved moments.

        Raises:
            CheckpointMismatch: they are of another network.
        """
        for name, tensor in self.moments._asdict().items():
            if state[name].shape != tuple(tensor.shape):
                raise CheckpointMismatch(
                    f"the saved optimizer's {name!r} is {state[name].shape}, this network's {tuple(tensor.shape)}"
                )
            tensor.copy_(as_tensor(state[name]))


def _fused(vector: torch.Tensor, moments: Moments, gradient: torch.Tensor, lr: torch.Tensor, epsilon: float) -> None:
    """The operator that `torch.optim.Adam` calls; making any torch optimizer would import the compiler, for seconds."""
    torch._fused_adam_(
        [vector],
        [gradient],
        [moments.mean],
        [moments.square],
        [],
        [moments.step],
        lr=lr,
        beta1=_BETA1,
        beta2=_BETA2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
        grad_scale=None,
        found_inf=None,
    )


def _plain(vector: torch.Tensor, moments: Moments, gradient: torch.Tensor, lr: torch.Tensor, epsilon: float) -> None:
    """The same as formulas, which the compiler fuses with what is around them."""
    moments.mean.lerp_(gradient, 1 - _BETA1)
    moments.square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
    rate = lr / (1 - _BETA1**moments.step)
    root = (moments.square / (1 - _BETA2**moments.step)).sqrt()
    vector.sub_(rate * moments.mean / (root + epsilon))
