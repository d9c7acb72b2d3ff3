"""Policy: what the rest of the trainer knows of an algorithm's networks and updates."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch

from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import AnyBatch
from rltrain.state import Array, State

if TYPE_CHECKING:
    from rltrain.policies.sharing import Share

B = TypeVar("B", bound=AnyBatch, contravariant=True)

Minibatches: TypeAlias = int | Mapping[str, int]
"""A number of minibatches, by policy where there are several."""


@dataclass(frozen=True, slots=True)
class LearnInfo:
    """What an update tells.

    Attributes:
        stats: scalars for reports, e.g. `loss`.
        td_error: float32 (n,), the new TD errors of the batch's rows, where the algorithm has them; by policy where
            there are several.
    """

    stats: dict[str, float]
    td_error: Any = None


class Learned(Protocol[B]):
    """What learns, from batches of a kind: a policy, or a group of them."""

    def postprocess(self, batch: B) -> Any:
        """Make what is learnt from out of consecutive rows; each environment's rows are together, in order."""

    def td_error(self, batch: B) -> Any:
        """First TD errors, float32 (count,), of postprocessed rows; None where the buffer is to choose priorities."""

    def learn_on_batch(self, batch: B) -> LearnInfo:
        """Update in this process."""

    def learn_share(self, batch: B, share: "Share") -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        """Update together with copies of this policy that have the other shares; not for on-policy algorithms.

        Yields and is sent vectors as `minibatch_sgd`; TD errors are those of the share's rows.

        Args:
            batch: the whole of it.
        """

    def minibatch_sgd(self, batch: B, *, minibatches: Any = None) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        """Update together with other ranks; only for on-policy algorithms.

        Yields float32 (parameters + 1,): the minibatch's mean gradient times its rows, then the rows. It is
        sent the mean (or sum) of all ranks' vectors, which may have been made in place.

        Args:
            batch: this rank's rows; may be empty.
            minibatches: number in each epoch, the same on every rank and at least `minibatches_of` each;
                this rank's own number by default.
        """

    def minibatches_of(self, batch: B) -> Any:
        """Minibatches in an epoch over a batch, see `Minibatches`."""

    def update_target(self) -> None:
        """Copy the network to the target network, where there is one."""

    def set_global_step(self, env_steps: int) -> None:
        """Move schedules to a global number of env steps."""

    def set_workers(self, workers: int) -> None:
        """There are so many workers now, and exploration that depends on that follows."""

    def get_weights(self) -> State:
        """What acting needs, as copies: arrays by parameter."""

    def set_weights(self, weights: State) -> None:
        """Take over another policy's weights."""

    def get_state(self) -> State:
        """Networks, target, optimizer, counters and random states."""

    def set_state(self, state: State) -> None:
        """Go on from a saved state."""

    def learned_state(self) -> State:
        """The part of the state that must be the same on all ranks: networks and optimizer."""

    def exploration_state(self) -> dict[str, float]:
        """Numbers of the exploration, e.g. `epsilon`."""


@runtime_checkable
class Policy(Learned[Batch], Protocol):
    """Networks, their optimizer, exploration and random states; one for each worker and one for the driver."""

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        """Actions for observations (n, *shape), and more columns to keep with them (see `models.spaces`)."""

    def postprocess(self, batch: Batch) -> Batch: ...

    def td_error(self, batch: Batch) -> Array | None: ...

    def minibatch_sgd(
        self, batch: Batch, *, minibatches: int | None = None
    ) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]: ...

    def minibatches_of(self, batch: Batch) -> int: ...


@runtime_checkable
class RecurrentPolicy(Policy, Protocol):
    """A policy whose actions follow from what it remembers of the episode, too."""

    def initial_state(self, rows: int) -> Array:
        """What is remembered at an episode's begin, float32 (rows, size)."""

    def compute_actions(
        self, obs: Array, *, explore: bool, state: Array | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """As of any policy, from the state before the observations, (n, size); None at episodes' begin.

        Of the columns NEXT_STATE is the state after them, the others are kept.
        """


def interpolate(points: tuple[tuple[float, float], ...], step: int) -> float:
    """Value of a schedule of (env steps, value): linear between points, constant outside."""
    if step <= points[0][0]:
        return points[0][1]
    for (start, low), (end, high) in pairwise(points):  # a tenth of what np.interp takes, with each fragment and update
        if step < end:
            return low + (high - low) * (step - start) / (end - start)
    return points[-1][1]
