"""Between NumPy and torch."""

import torch

from rltrain.state import Array

CPU = torch.device("cpu")


def as_tensor(array: Array, device: torch.device = CPU) -> torch.Tensor:
    """A tensor of an array; shares memory on the CPU, except with read-only arrays (Ray's), which torch can't mark."""
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return tensor if device.type == "cpu" else tensor.to(device)


def generator_bytes(generator: torch.Generator) -> Array:
    """A torch generator's state, uint8."""
    state: Array = generator.get_state().numpy().copy()
    return state


def restore_generator_bytes(generator: torch.Generator, state: Array) -> None:
    """Put a generator where `state` was taken.

    Raises:
        ValueError: the state is of another kind of generator.
    """
    try:
        generator.set_state(torch.from_numpy(state.copy()))
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"not the state of a torch generator: {error}") from error
