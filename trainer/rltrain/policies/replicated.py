"""One policy as copies on several devices of one process, which learn together and stay identical."""

from collections.abc import Generator, Sequence
from typing import Protocol

import torch

from rltrain.policies.base import LearnInfo, Policy, RecurrentPolicy
from rltrain.policies.sharing import WHOLE, Share, alone, merged, together
from rltrain.rollout.batch import Batch
from rltrain.state import Array, State


class Copy(Policy, Protocol):
    """A policy on one device, whose random numbers can be made another's."""

    def draws(self) -> torch.Tensor:
        """State of what torch's random numbers are drawn from."""

    def draw_on(self, draws: torch.Tensor) -> None:
        """Draw what another policy would have drawn next."""


class ReplicatedPolicy:
    """Splits each train batch over its copies, and sums their gradients; the first copy acts and is what is saved.

    Args:
        copies: made alike, each on its own device.
    """

    def __init__(self, copies: Sequence[Copy]) -> None:
        self.copies = copies
        self._first = copies[0]

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        return self._first.compute_actions(obs, explore=explore)

    def postprocess(self, batch: Batch) -> Batch:
        return self._first.postprocess(batch)

    def td_error(self, batch: Batch) -> Array | None:
        return self._first.td_error(batch)

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        return alone(self.learn_share(batch, WHOLE))

    def learn_share(self, batch: Batch, share: Share) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        for copy in self.copies[1:]:
            copy.draw_on(self._first.draws())  # which has acted meanwhile
        parts = [share.part(position, len(self.copies)) for position in range(len(self.copies))]
        updates = [copy.learn_share(batch, part) for copy, part in zip(self.copies, parts, strict=True)]
        infos = yield from together(updates)
        rows = [part.rows(batch.count) for part in parts]
        return merged(infos, [batch.slice(each.start, each.stop).steps for each in rows])

    def minibatch_sgd(
        self, batch: Batch, *, minibatches: int | None = None
    ) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        return self._first.minibatch_sgd(batch, minibatches=minibatches)

    def minibatches_of(self, batch: Batch) -> int:
        return self._first.minibatches_of(batch)

    def update_target(self) -> None:
        for copy in self.copies:
            copy.update_target()

    def set_global_step(self, env_steps: int) -> None:
        for copy in self.copies:
            copy.set_global_step(env_steps)

    def set_workers(self, workers: int) -> None:
        for copy in self.copies:
            copy.set_workers(workers)

    def get_weights(self) -> dict[str, Array]:
        return self._first.get_weights()

    def set_weights(self, weights: dict[str, Array]) -> None:
        for copy in self.copies:
            copy.set_weights(weights)

    def get_state(self) -> State:
        return self._first.get_state()

    def set_state(self, state: State) -> None:
        for copy in self.copies:
            copy.set_state(state)

    def learned_state(self) -> State:
        return self._first.learned_state()

    def exploration_state(self) -> dict[str, float]:
        return self._first.exploration_state()


class ReplicatedRecurrentPolicy(ReplicatedPolicy):
    """The same of a policy that remembers."""

    def initial_state(self, rows: int) -> Array:
        return self._recurrent.initial_state(rows)

    def compute_actions(
        self, obs: Array, *, explore: bool, state: Array | None = None
    ) -> tuple[Array, dict[str, Array]]:
        return self._recurrent.compute_actions(obs, explore=explore, state=state)

    @property
    def _recurrent(self) -> RecurrentPolicy:
        assert isinstance(self._first, RecurrentPolicy)
        return self._first


def replicated(copies: Sequence[Copy]) -> Policy:
    """One policy out of copies."""
    kind = ReplicatedRecurrentPolicy if isinstance(copies[0], RecurrentPolicy) else ReplicatedPolicy
    return kind(copies)
