"""One of several learners that learn together, each from its share of every train batch."""

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

import torch

from rltrain.flow import CollectiveFailed
from rltrain.ops.learner import Learner, Learnt
from rltrain.ops.train import BeforeLearnOnBatch
from rltrain.policies.base import Learned
from rltrain.policies.sharing import Share, merged_stats
from rltrain.replay.shard import PriorityUpdate
from rltrain.rollout.multi_agent_batch import AnyBatch, part_of
from rltrain.state import State

NUMBERS: Final = 64
"""More than there can be batches in the queue, and few enough for sums of their squares to be exact in float32."""
_LARGEST_ERROR: Final = 0.5


class GroupLearner(Learner):
    """Learns as the others of its group do: their policies begin alike, and each update is the same for all.

    Args:
        share: which rows of every batch it computes with.

    Attributes:
        average: the group's collective operation; set when the group is formed.
        store: where the group's members met.
    """

    def __init__(self, policy: Learned[Any], before_learn: BeforeLearnOnBatch, share: Share) -> None:
        super().__init__(policy, before_learn)
        self.average: Callable[[Any], Any] | None = None
        self.store: Any = None
        self._share = share
        self._updates = 0

    def learn_shares(
        self, number: int, env_steps: int, batches: Sequence[AnyBatch]
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[tuple[Learnt, ...], tuple[PriorityUpdate, ...]]]:
        """One update out of each whole batch; what it returns is of this learner's rows.

        Args:
            number: of the first batch, the same for every member and below `NUMBERS`: a member that has missed some
                must not take others' gradients for those of the batch that it has itself.

        Raises:
            CollectiveFailed: the others are at another batch; nothing has changed by it then.
        """
        learnt: list[Learnt] = []
        priorities: list[PriorityUpdate] = []
        for place, batch in enumerate(batches):
            one, priority = yield from self._learn_share((number + place) % NUMBERS, env_steps, batch)
            learnt.append(one)
            priorities += [] if priority is None else [priority]
        return tuple(learnt), tuple(priorities)

    def _learn_share(
        self, number: int, env_steps: int, batch: AnyBatch
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[Learnt, PriorityUpdate | None]]:
        begun = time.perf_counter()
        batch = self._before_learn(batch)
        own = part_of(batch, self._share.rows)
        with self._whole:
            self.policy.set_global_step(env_steps)
            update = self.policy.learn_share(batch, self._share)
            vector = next(update)
        at = vector.new_tensor([number, number**2])
        while True:
            # Between these the policy is whole and can be read, as it must be should this wait be in vain.
            mean = yield torch.cat([vector, at])
            # All are at this number if and only if their mean is, and the mean of their squares its square.
            if float((mean[-len(at) :] - at).abs().max()) * self._share.size > _LARGEST_ERROR:
                raise CollectiveFailed(f"this learner has batch {number}, and another one another")
            with self._whole:
                try:
                    vector = update.send(mean[: -len(at)])
                except StopIteration as stop:
                    info = stop.value
                    self._updates += 1
                    break
        learnt = self._learnt(begun, own.count, info.stats)
        return learnt, None if info.td_error is None else PriorityUpdate.of(own, info.td_error)

    def newest(self) -> tuple[int, State]:
        """Updates since it was made, and the policy's state after them."""
        with self._whole:
            return self._updates, self.policy.get_state()


def learnt_together(parts: Sequence[Learnt]) -> Learnt:
    """What an update tells, out of what each of the group does."""
    counts = [part.count for part in parts]
    return Learnt(
        count=sum(counts),
        stats=merged_stats([part.stats for part in parts], counts),
        waited_s=max(part.waited_s for part in parts),
        learnt_s=max(part.learnt_s for part in parts),
    )
