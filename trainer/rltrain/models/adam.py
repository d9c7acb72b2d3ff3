"""Adam (Kingma & Ba 2015) on one flat vector."""

import torch

from rltrain.api.errors import CheckpointMismatch
from rltrain.models.flat import FlatParameters
from rltrain.models.tensors import as_tensor
from rltrain.state import Array

_BETAS = (0.9, 0.999)


class Adam:
    """The fused operator that `torch.optim.Adam` calls, without its class.

    Making any `torch.optim` optimizer imports torch's compiler: several seconds before the first step.
    """

    def __init__(self, parameters: FlatParameters, epsilon: float) -> None:
        self._vector, self._gradient = parameters.vector, parameters.gradient
        self._epsilon = epsilon
        self._step = torch.zeros((), device=self._vector.device)
        self._mean = torch.zeros_like(self._vector)
        self._square = torch.zeros_like(self._vector)

    def step(self, lr: float) -> None:
        """Move the vector by its gradient's running moments."""
        self._step += 1
        torch._fused_adam_(
            [self._vector],
            [self._gradient],
            [self._mean],
            [self._square],
            [],
            [self._step],
            lr=lr,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=0.0,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=None,
            found_inf=None,
        )

    def get(self) -> dict[str, Array]:
        """Copies of the moments, float32 (size,), and the number of steps."""
        tensors = {"step": self._step, "mean": self._mean, "square": self._square}
        return {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}

    def set(self, state: dict[str, Array]) -> None:
        """Take over saved moments.

        Raises:
            CheckpointMismatch: they are of another network.
        """
        for name, tensor in {"step": self._step, "mean": self._mean, "square": self._square}.items():
            if state[name].shape != tuple(tensor.shape):
                raise CheckpointMismatch(
                    f"the saved optimizer's {name!r} is {state[name].shape}, this network's {tuple(tensor.shape)}"
                )
            tensor.copy_(as_tensor(state[name]))
