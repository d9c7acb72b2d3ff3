"""Who may lead, by a Lease: a pure state machine over what the Lease says and when this process saw it change.

Times are this process' own clock's: those written in the Lease come from other machines and are never compared.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Terms:
    """How long things may take.

    Attributes:
        seconds: a Lease that isn't renewed for so long may be taken by another.
    """

    seconds: int = 15

    @property
    def deadline(self) -> float:
        """Seconds after its last renewal in which a leader may act; what it has sent by then arrives before the end."""
        return self.seconds * 2 / 3

    @property
    def renew(self) -> float:
        """Seconds between two renewals."""
        return self.seconds / 6

    @property
    def look(self) -> float:
        """Seconds between two looks at another's Lease, and between tries after a failure."""
        return min(1.0, self.renew)


@dataclass(frozen=True)
class Holding:
    """What a Lease says.

    Attributes:
        holder: identity of its leader; empty once that has let go.
        seconds: how long it lasts after each renewal.
        acquired, renewed: when, as text, for people to read.
        transitions: how many times it went to another holder.
    """

    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0

    @classmethod
    def read(cls, spec: dict[str, Any]) -> "Holding":
        """From a Lease's spec, where anything may be missing."""
        return cls(
            holder=spec.get("holderIdentity") or "",
            seconds=spec.get("leaseDurationSeconds") or 0,
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> dict[str, Any]:
        """A Lease's spec."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }


@dataclass(frozen=True)
class Candidate:
    """One process' knowledge of the Lease.

    Attributes:
        identity: unlike any other process', also in the same pod.
        terms: how long things may take.
        seen: the Lease as it last was; None before it was ever seen.
        changed_at: when it was first seen like that.
        renewed_at: when the last renewal that succeeded was sent; None unless this process holds the Lease.
    """

    identity: str
    terms: Terms
    seen: Holding | None = None
    changed_at: float = 0.0
    renewed_at: float | None = None

    def saw(self, found: Holding | None, now: float) -> "Candidate":
        """After a look at the Lease.

        A Lease that was deleted is as it last was: its holder knows nothing of that yet, and acts until its deadline.
        """
        if found is None or found == self.seen:
            return self
        renewed_at = self.renewed_at if found.holder == self.identity else None
        return replace(self, seen=found, changed_at=now, renewed_at=renewed_at)

    def may_take(self, now: float) -> bool:
        """Whether to write itself into the Lease, for the first time or again."""
        if self.seen is None or self.seen.holder in ("", self.identity):
            return True
        return now >= self.changed_at + (self.seen.seconds or self.terms.seconds)

    def wish(self, clock: datetime) -> Holding:
        """The Lease as it is to be."""
        time, before = _text(clock), self.seen or Holding(holder=self.identity)
        if before.holder == self.identity:
            acquired, transitions = before.acquired or time, before.transitions
        else:
            acquired, transitions = time, before.transitions + 1
        return Holding(self.identity, self.terms.seconds, acquired, time, transitions)

    def took(self, written: Holding, sent_at: float) -> "Candidate":
        """After the Lease was written as wished."""
        return replace(self, seen=written, changed_at=sent_at, renewed_at=sent_at)

    def leads(self, now: float) -> bool:
        """Whether it may act: nobody else can hold the Lease yet."""
        return self.renewed_at is not None and now < self.renewed_at + self.terms.deadline

    def farewell(self, clock: datetime) -> Holding:
        """The Lease as it is let go: free at once."""
        before = self.seen or Holding()
        return replace(before, holder="", seconds=1, renewed=_text(clock))


def _text(clock: datetime) -> str:
    return clock.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
