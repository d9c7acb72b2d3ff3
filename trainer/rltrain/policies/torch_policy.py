"""TorchPolicy: what policies share: flat parameters, Adam, schedules, random states and their saving."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from rltrain.api.config import PlanConfig
from rltrain.compiled.function import Function
from rltrain.compiled.library import Library
from rltrain.models.adam import Adam
from rltrain.models.flat import FlatParameters
from rltrain.models.tensors import generator_bytes, restore_generator_bytes
from rltrain.policies.base import LearnInfo, interpolate
from rltrain.policies.sharing import Share, weighted
from rltrain.rollout.batch import Batch
from rltrain.state import Array, State, generator_state, restore_generator


@dataclass(frozen=True)
class Seeds:
    """Seeds of a policy.

    Attributes:
        job: of the first weights, which are so the same in every worker.
        worker: index that sets this policy's random streams apart from other workers'.
    """

    job: int
    worker: int = 0


class TorchPolicy:
    """Base of policies; a subclass gives the network and the loss.

    Args:
        build: makes the network; called with torch's random state seeded and put back afterwards.

    Attributes:
        functions: by name, what takes the time and can be native code.
    """

    def __init__(
        self,
        config: PlanConfig,
        build: Callable[[], nn.Module],
        seeds: Seeds,
        device: str,
        adam_epsilon: float = 1e-8,
    ) -> None:
        self.device = torch.device(device)
        self.global_step = 0
        self._lr, self._lr_schedule = config.lr, config.lr_schedule
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seeds.job)
            network = build()
        self._flat = FlatParameters(network.to(self.device))
        self._adam = Adam(self._flat, adam_epsilon, config.grad_clip)
        self.functions: dict[str, Function] = {}
        stream = np.random.SeedSequence([seeds.job, seeds.worker])
        self._rng = np.random.default_rng(stream)
        self._generator = torch.Generator(self.device)
        self._generator.manual_seed(int(stream.spawn(1)[0].generate_state(1)[0]))
        self.set_global_step(0)

    def set_global_step(self, env_steps: int) -> None:
        self.global_step = env_steps
        if self._lr_schedule:
            self._lr = interpolate(self._lr_schedule, env_steps)

    def set_workers(self, workers: int) -> None:
        pass

    def td_error(self, batch: Batch) -> Array | None:
        return None

    def update_target(self) -> None:
        pass

    def minibatches_of(self, batch: Batch) -> int:
        raise NotImplementedError("only on-policy algorithms learn by minibatches")

    def minibatch_sgd(
        self, batch: Batch, *, minibatches: int | None = None
    ) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        raise NotImplementedError("only on-policy algorithms learn by minibatches")

    def learn_share(self, batch: Batch, share: Share) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        rows = share.rows(batch.count)
        own = batch.slice(rows.start, rows.stop)
        if own.count:
            return (yield from weighted(self._shared_update(batch, rows), own.steps))
        # It must keep step with the others all the same: with a row of theirs, which counts for nothing.
        info = yield from weighted(self._shared_update(batch, slice(0, 1)), 0)
        return LearnInfo(info.stats, None if info.td_error is None else info.td_error[:0])

    def draws(self) -> torch.Tensor:
        """State of what torch's random numbers are drawn from, uint8 (size,)."""
        return self._generator.get_state()

    def draw_on(self, draws: torch.Tensor) -> None:
        """Draw what another policy would have drawn next, on a device of the same kind."""
        self._generator.set_state(draws)

    def exploration_state(self) -> dict[str, float]:
        return {}

    def get_weights(self) -> dict[str, Array]:
        return self._flat.get()

    def set_weights(self, weights: dict[str, Array]) -> None:
        self._flat.set(weights)

    def learned_state(self) -> State:
        return {"weights": self._flat.get(), "optimizer": self._adam.get()}

    def get_state(self) -> State:
        return {
            **self.learned_state(),
            "global_step": self.global_step,
            "rng": generator_state(self._rng),
            "torch_rng": generator_bytes(self._generator),
        }

    def set_state(self, state: State) -> None:
        self._flat.set(state["weights"])
        self._adam.set(state["optimizer"])
        restore_generator(self._rng, state["rng"])
        restore_generator_bytes(self._generator, state["torch_rng"])
        self.set_global_step(int(state["global_step"]))

    def compile_with(self, library: Library) -> None:
        """Run this policy's functions natively where the library has code."""
        for function in self.functions.values():
            function.compiler = library

    def _shared_update(self, batch: Batch, rows: slice) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        """One update, as far as some of a batch's rows go: yields gradients of their mean loss, see `sharing`.

        Whatever it draws it draws for the whole batch.
        """
        raise NotImplementedError("this algorithm learns by minibatches, see minibatch_sgd")

    def _function(self, function: Callable[..., tuple[torch.Tensor, ...]]) -> Function:
        made = Function(function)
        self.functions[made.name] = made
        return made

    def _apply_gradient(self) -> torch.Tensor:
        """Clip the flat gradient by its norm and step; returns the norm before clipping."""
        return self._adam.step(self._lr)
