"""What a plan is given: its config, its workers, and a place for what must outlive a restart."""

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rltrain.flow import Actor, Shards
from rltrain.flow.parallel import Call
from rltrain.models.agents import Roster
from rltrain.replay.buffer import Buffer
from rltrain.rollout.worker import RolloutWorker
from rltrain.state import State

C = TypeVar("C")


class Stateful(Protocol):
    """Something whose state goes into checkpoints."""

    def get_state(self) -> State: ...
    def set_state(self, state: State) -> None: ...


S = TypeVar("S", bound=Stateful)


class Workers(Shards, Protocol):
    """Actors of a plan's role, and the driver's own worker."""

    @property
    def local(self) -> RolloutWorker:
        """The driver's worker: its policy learns or follows, and it samples where there are no actors."""

    @property
    def wanted(self) -> int:
        """Actors asked for; 0 means that the local worker samples."""

    def publish_weights(self, *, only_new: bool = False) -> None:
        """The local policy has changed: every actor gets its weights with the next call for a sample.

        With `only_new` those alone do that are made from now on; `send_weights` is for the others.
        """

    def send_weights(self, actor: Actor) -> None:
        """Give one actor the local policy's weights, as they were last published."""

    def sampling(self, actor: Actor) -> Call:
        """What brings a fragment from `actor`, with new weights and the global step."""


@dataclass
class PlanContext(Generic[C]):
    """Everything a plan is built from.

    Attributes:
        config: the plan's own frozen options.
        workers: actors of the plan's role.
        seed: of whatever the plan draws in the driver.
        roster: who acts by which policy, where there are several agents.
        replay: the buffer that the runtime hands in, where the plan asks it for one; checkpoints hold it already.
        kept: parts that checkpoints hold, by name.
    """

    config: C
    workers: Workers
    seed: int = 0
    roster: Roster | None = None
    replay: Buffer[Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    def keep(self, name: str, part: S) -> S:
        """Put a part into checkpoints."""
        if name in self.kept:
            raise ValueError(f"two parts are called {name!r}")
        self.kept[name] = part
        return part
