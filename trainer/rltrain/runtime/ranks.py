"""DD-PPO's ranks as one group: formed of those that are there, torn down as a whole when one is lost."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from rltrain.api.errors import TrainingFailed
from rltrain.flow import Actor, ActorLost, Backend, CollectiveFailed, Future, ShardFailure, get_metrics
from rltrain.flow.metrics import FRAGMENTS_LOST, STEPS_SAMPLED
from rltrain.flow.parallel import Call
from rltrain.ops.ranks import Rank
from rltrain.ops.rollouts import sample_fragment
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.connect import Connect
from rltrain.runtime.crew import Crew, heard
from rltrain.state import Array, State

log = logging.getLogger(__name__)

GATHER_SECONDS: Final = 10.0
"""How long a group that could begin waits for ranks whose machines seem to be there."""
COPY_SECONDS: Final = 10.0
"""Between two copies of the ranks' common state into the driver."""
SURVIVOR_SECONDS: Final = 5.0
"""How long the survivors of a lost group have to hand over their last whole state."""


class RankGroup:
    """Ranks 0..n-1 over the actors that are there, at least `minimum`.

    Args:
        local: the driver's worker, whose policy follows the ranks.
        crew: the actors.
        minimum: ranks below which training waits.
        connect: joins actors into a process group; raises ShardFailure.
    """

    def __init__(
        self,
        local: RolloutWorker,
        crew: Crew,
        minimum: int,
        connect: Connect,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.local = local
        self.minimum = minimum
        self._crew = crew
        self._connect = connect
        self._monotonic = monotonic
        self._live: list[Actor] = []
        self._waiting: list[Actor] = []
        self._waiting_since = 0.0
        self._copied_at = -COPY_SECONDS
        self._whole: tuple[int, State] | None = None
        self._states: dict[int, State] = {}

    @property
    def backend(self) -> Backend:
        return self._crew.backend

    @property
    def wanted(self) -> int:
        return self._crew.wanted

    def actors(self) -> Sequence[Actor]:
        return self._live

    def pending(self) -> Sequence[Future]:
        return self._crew.pending()

    def refresh(self) -> None:
        """At an iteration's boundary: take in ranks that have come back, and copy the common state now and then."""
        arrived = self._crew.arrived()
        if arrived and not self._waiting:
            self._waiting_since = self._monotonic()
        self._waiting = sorted([*self._waiting, *arrived], key=lambda actor: actor.index)
        try:
            if self._waiting and self._complete():
                self._form()
            elif self._live and self._monotonic() - self._copied_at >= COPY_SECONDS:
                self._copy()
        except ShardFailure as failure:
            self.failed([failure])

    def resize(self, wanted: int, minimum: int) -> None:
        """At an iteration's boundary: let ranks beyond go, and have the others form a group anew; new ones come later.

        Raises RltrainError when a rank is lost meanwhile, and that is hopeless.
        """
        self.minimum = minimum
        self._crew.resize(wanted)
        self._states = {index: state for index, state in self._states.items() if index <= wanted}
        leaving = [actor for actor in [*self._live, *self._waiting] if actor.index > wanted]
        if not leaving:
            return
        try:
            if self._live:
                self._copy()
        except ShardFailure as failure:
            self.failed([failure])
            leaving = []  # all of them have ended, and those beyond aren't made again
        for actor in leaving:
            self.backend.kill(actor)
        self._waiting = [actor for actor in [*self._live, *self._waiting] if actor not in leaving]
        self._live, self._waiting_since = [], self._monotonic()
        self.refresh()

    def succeeded(self, actor: Actor) -> None:
        self._crew.succeeded(actor)

    def failed(self, failures: Sequence[ShardFailure]) -> None:
        """Tear the whole group down and begin to make it again. Raises RltrainError when that is hopeless."""
        # A rank whose code or collective failed is alive, and may be the only one that still has the state.
        self._rescue([failure.actor for failure in failures if isinstance(failure, ActorLost)])
        group = [*self._live, *self._waiting]
        self._live, self._waiting = [], []
        log.warning("rank lost (%s): the group of %d is made again", failures[0], len(group))
        for actor in group:
            self.backend.kill(actor)
        get_metrics().counters[FRAGMENTS_LOST] += len(group)
        for failure in self._causes(failures):
            self._crew.judge(failure)
        for actor in group:
            if actor.index <= self.wanted:
                self._crew.start(actor.index)

    def publish_weights(self, *, only_new: bool = False) -> None:
        raise TrainingFailed("ranks learn by themselves; the driver has no weights to give them")

    def send_weights(self, actor: Actor) -> None:
        self.publish_weights()

    def sampling(self, actor: Actor) -> Call:
        return Call(sample_fragment, (get_metrics().counters[STEPS_SAMPLED], self.wanted, None))

    def get_state(self) -> State:
        """The ranks' common state, and what each has of its own."""
        if self._live:
            self._copy()
        futures = [actor.apply(Rank.own_state) for actor in self._live]
        ranks = {str(future.actor.index): self.backend.result(future) for future in futures}
        iteration, learned = self._whole or (0, self.local.policy.learned_state())
        return {"iteration": iteration, "learned": learned, "ranks": ranks, "local": self.local.get_state()}

    def newest_weights(self) -> dict[str, Array] | None:
        """Those that all ranks have; None where the group is being made again just now."""
        try:
            return self.backend.result(self._live[0].apply(_weights)) if self._live else None
        except ShardFailure as failure:
            self.failed([failure])
            return None

    def learned_state(self) -> State:
        """Networks and optimizer that all ranks have in common."""
        if self._live:
            self._copy()
        return self._whole[1] if self._whole else self.local.policy.learned_state()

    def set_state(self, state: State) -> None:
        """Restore the driver's worker now and the ranks when the group is formed."""
        self.local.set_state(state["local"])
        self._whole = (int(state["iteration"]), state["learned"])
        ranks = {int(index): saved for index, saved in state["ranks"].items()}
        self._states = {index: saved for index, saved in ranks.items() if index <= self.wanted}

    def stop(self) -> None:
        """End all ranks."""
        self._crew.dismiss([*self._live, *self._waiting])
        self._live, self._waiting = [], []

    def _complete(self) -> bool:
        """Whether to form a group now rather than to wait for more ranks."""
        if self._live:
            return True
        there = len(self._waiting)
        if there >= min(self.wanted, max(self.minimum, self.backend.slots(self._crew.role))):
            return True
        return there >= self.minimum and self._monotonic() - self._waiting_since >= GATHER_SECONDS

    def _form(self) -> None:
        members = sorted([*self._live, *self._waiting], key=lambda actor: actor.index)
        if self._live:
            self._copy()
        self._live, self._waiting = members, []
        self._connect(members)
        if self._whole is None:
            self._whole = self.backend.result(members[0].control(_whole))
        shared = self.backend.share(self._whole)
        futures = [actor.apply(Rank.begin, shared, self._states.pop(actor.index, None)) for actor in members]
        for future in futures:
            self.backend.result(future)
        log.info("%d of %d ranks form a group", len(members), self.wanted)

    def _copy(self) -> None:
        self._whole = self.backend.result(self._live[0].control(_whole))
        self._copied_at = self._monotonic()

    def _rescue(self, lost: Sequence[Actor]) -> None:
        """Take the newest whole state of the survivors, who may hang in a collective operation."""
        futures = [actor.control(_whole) for actor in self._live if actor not in lost]
        for _, whole in heard(self.backend, futures, SURVIVOR_SECONDS, self._monotonic):
            if not isinstance(whole, ShardFailure) and (self._whole is None or whole[0] > self._whole[0]):
                self._whole = whole

    def _causes(self, failures: Sequence[ShardFailure]) -> Sequence[ShardFailure]:
        """Without those that only say that another rank is gone."""
        return [failure for failure in failures if not isinstance(failure.__cause__, CollectiveFailed)]


def _weights(rank: Rank) -> dict[str, Array]:
    return rank.get_weights()


def _whole(rank: Rank) -> tuple[int, State]:
    return rank.whole
