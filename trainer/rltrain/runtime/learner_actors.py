"""Where the learner lives: in a thread of the driver, on a machine of its own, or on several that learn together."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from rltrain.api.errors import RltrainError, TrainingFailed
from rltrain.flow import Actor, ActorFailed, ActorLost, Backend, CollectiveFailed, Future, ShardFailure, ValueLost
from rltrain.ops.learner import Learner
from rltrain.ops.learner_group import GroupLearner
from rltrain.runtime.connect import Connect
from rltrain.runtime.crew import Crew, heard
from rltrain.state import State, content_hash

log = logging.getLogger(__name__)

COPY_SECONDS: Final = 10.0
"""Between two copies of a remote learner's state into the driver."""
SURVIVOR_SECONDS: Final = 15.0
"""How long the survivors of a broken group have to hand over their state; who says nothing is gone.

Ray may take longer to tell that a machine is gone, and the others' broken operation tells of nobody.
"""


class LearnerActors:
    """The learner's actors: all of them, alike, or for the time being none.

    Args:
        backend: where they live.
        make: makes what actor `index` holds, its `incarnation`-th.
        crew: of actors on machines of their own; None for a thread of the driver.
        connect: joins several into a process group.
        lost: told when the learner is gone, with all that it had been given.

    Attributes:
        live: the actors; the state of the first is the learner's.
        copy: the newest state that the driver has.
    """

    def __init__(
        self,
        backend: Backend,
        make: Callable[[int, int], Learner],
        crew: Crew | None,
        connect: Connect,
        lost: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backend = backend
        self.live: tuple[Actor, ...] = () if crew else (backend.here(partial(make, 1, 0), index=1),)
        self.copy: State | None = None
        self._crew = crew
        self._connect = connect
        self._lost = lost
        self._monotonic = monotonic
        self._waiting: list[Actor] = []
        self._copying: Future | None = None
        self._hashing: list[Future] = []
        self._targets: list[Future] = []
        self._copied_at = monotonic()

    @property
    def remote(self) -> bool:
        """Whether they have machines of their own, which may be lost."""
        return self._crew is not None

    def pending(self) -> Sequence[Future]:
        """One for each that is being made."""
        return self._crew.pending() if self._crew else ()

    def owns(self, actor: Actor) -> bool:
        """Whether it is one of these."""
        return actor in self.live or actor in self._waiting

    def succeeded(self) -> None:
        """Each of them has brought a result."""
        for actor in self.live if self._crew else ():
            self._crew.succeeded(actor)  # type: ignore[union-attr]

    def refresh(self) -> None:
        """Take in actors that have become ready, and look after those that are there."""
        if self._crew is None:
            return
        self._waiting = sorted([*self._waiting, *self._crew.arrived()], key=lambda actor: actor.index)
        if len(self._waiting) == self._crew.wanted:
            try:
                self._form()
            except ShardFailure as failure:
                self._break_up(failure)
        elif self.live and self.backend.parallel:
            self._look_after()

    def ask(self, function: Callable[[Learner], Any]) -> Any:
        """What the first says between two updates; None where there is no learner just now."""
        return self._ask(self.live[:1], function)

    def restore(self, state: State) -> None:
        """Have all go on from a state."""
        shared = state if not self.remote else self.backend.share(state)
        self._ask(self.live, _restore, shared)

    def update_target(self) -> None:
        """Copy the network to the target network, after the same update for each."""
        if len(self.live) == 1 or not self.backend.parallel:
            self._ask(self.live, Learner.update_target)
        else:
            # Beside what they do they would do it after updates of their own; so it is done after all they have.
            self._targets = [actor.apply(Learner.update_target) for actor in self.live]

    def failed(self, failure: ShardFailure) -> None:
        """Make a lost learner again. Raises what it died of where that was its own doing."""
        cause = failure.__cause__
        if isinstance(failure, ValueLost):
            log.warning("a batch is lost on its way to the learner: %s", failure)
        elif isinstance(failure, ActorFailed) and not isinstance(cause, CollectiveFailed):
            if isinstance(cause, RltrainError):
                raise cause
            raise TrainingFailed(f"the learner failed: {type(cause).__name__}: {cause}") from cause
        elif self._crew is None:
            raise TrainingFailed(f"the learner's thread has ended: {failure}") from failure
        elif self.owns(failure.actor):
            self._break_up(failure)

    def out_of_step(self, failure: ShardFailure) -> None:
        """Some of them have missed a batch that others have: make all again."""
        self._break_up(failure)

    def close(self) -> None:
        """End a thread of this process."""
        if self._crew is None:
            for actor in self.live:
                self.backend.kill(actor)

    def _form(self) -> None:
        if len(self._waiting) > 1:
            self._connect(self._waiting)
        self.live, self._waiting = tuple(self._waiting), []
        if self.copy is not None:
            # Before anything else, or somebody could see a learner that has learnt nothing.
            self.restore(self.copy)
        if self._targets and self.live:
            self.update_target()

    def _break_up(self, failure: ShardFailure) -> None:
        """End all of them at once, whatever they wait for, and begin to make them again."""
        assert self._crew is not None
        log.warning("the learner is lost and made again: %s", failure)
        gone: list[ShardFailure] = [failure] if isinstance(failure, ActorLost) else []
        gone += self._rescue([each.actor for each in gone])
        group = [*self.live, *self._waiting]
        self._targets = [] if self._done(self._targets) else self._targets
        self.live, self._waiting, self._hashing, self._copying = (), [], [], None
        for actor in group:
            self.backend.kill(actor)
        self._lost()
        for each in gone or [failure]:
            self._crew.judge(each)
        for actor in group:
            self._crew.start(actor.index)

    def _rescue(self, lost: Sequence[Actor]) -> list[ShardFailure]:
        """Take over the survivors' newest state, who may hang in a collective operation; returns who else is lost."""
        left = [actor for actor in [*self.live, *self._waiting] if actor not in lost]
        futures = [actor.control(GroupLearner.newest) for actor in left]
        newest, gone = -1, list[ShardFailure]()
        silent = list(left)
        for actor, said in heard(self.backend, futures, SURVIVOR_SECONDS, self._monotonic):
            silent.remove(actor)
            if isinstance(said, ActorLost):
                gone.append(said)
            elif not isinstance(said, ShardFailure) and actor in self.live and said[0] > newest:
                newest, self.copy = said
        return [*gone, *(ActorLost(actor, f"actor {actor.index} doesn't answer") for actor in silent)]

    def _done(self, futures: Sequence[Future]) -> bool:
        """Whether all have brought a result."""
        if not futures or len(self.backend.wait(futures, 0.0)) < len(futures):
            return not futures
        try:
            for future in futures:
                self.backend.result(future)
        except ShardFailure:
            return False
        return True

    def _look_after(self) -> None:
        """Every now and then copy the state, and see that all have the same."""
        if self._copying is None and self._monotonic() - self._copied_at >= COPY_SECONDS:
            self._copied_at = self._monotonic()
            self._copying = self.live[0].control(Learner.get_state)
            if len(self.live) > 1:
                self._hashing = [actor.apply(_hash) for actor in self.live]
        try:
            if self._copying is not None and self.backend.wait([self._copying], 0.0):
                copying, self._copying = self._copying, None
                self.copy = self.backend.result(copying)
            if self._hashing and len(self.backend.wait(self._hashing, 0.0)) == len(self._hashing):
                hashing, self._hashing = self._hashing, []
                hashes = [self.backend.result(future) for future in hashing]
                if len(set(hashes)) > 1:
                    raise TrainingFailed(f"learners have drifted apart, their tensors' hashes are {hashes}")
        except ShardFailure as failure:
            self.failed(failure)

    def _ask(self, actors: Sequence[Actor], function: Callable[..., Any], *args: Any) -> Any:
        """What the last of them says between two updates."""
        answer: Any = None
        try:
            for future in [actor.control(function, *args) for actor in actors]:
                answer = self.backend.result(future)
        except ShardFailure as failure:
            self.failed(failure)
            return None
        return answer


def _restore(learner: Learner, state: State) -> None:
    learner.set_state(state)


def _hash(learner: Learner) -> str:
    return content_hash(learner.policy.learned_state())
