"""Kueue's Workload of a job as the API server hands it out, and what its owner has to say in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rltrain_operator.plan.child import Child
from rltrain_operator.plan.times import to_text
from rltrain_operator.render import Object

LONGEST = 1024
"""Characters of a condition's message that Kueue takes."""


@dataclass(frozen=True)
class Workload(Child):
    """One Workload."""

    @property
    def queue(self) -> str:
        return str(self.raw.get("spec", {}).get("queueName", ""))

    @property
    def status(self) -> Object:
        return self.raw.get("status") or {}

    def condition(self, kind: str) -> Object:
        """A condition; empty when it was never set."""
        return next((each for each in self.status.get("conditions") or [] if each["type"] == kind), {})

    def holds(self, kind: str) -> bool:
        return bool(self.condition(kind).get("status") == "True")

    @property
    def reserved(self) -> bool:
        """Whether it holds quota."""
        return self.holds("QuotaReserved")

    @property
    def admitted(self) -> bool:
        """Whether the job may have pods."""
        return self.holds("Admitted") and not self.evicted and not self.deleting

    @property
    def evicted(self) -> bool:
        """Whether the job is to give its pods up. Stays so until there is quota for it again."""
        return self.holds("Evicted")

    @property
    def finished(self) -> bool:
        return self.holds("Finished")

    @property
    def words(self) -> str:
        """Why it isn't admitted, as Kueue puts it."""
        order = ("Admitted", "QuotaReserved") if self.reserved else ("QuotaReserved",)
        found = (self.condition(kind).get("message") for kind in order)
        return next((text for text in found if text), "Kueue hasn't looked at it yet.")


@dataclass(frozen=True)
class Told:
    """Fields of a Workload's status to set.

    Attributes:
        workload: the very state of it that they are for.
        status: the fields; the list of conditions as a whole.
    """

    workload: Workload
    status: Object


@dataclass(frozen=True)
class Said:
    """A condition of a Workload without its history."""

    kind: str
    status: bool
    reason: str
    message: str


def tell(workload: Workload, now: datetime, said: Sequence[Said], *, admission: bool = True) -> Told | None:
    """Set conditions, and withdraw the admission; None when the Workload says all this already."""
    new = {each.kind: each for each in said}
    before = {each["type"]: each for each in workload.status.get("conditions") or []}
    made = [_condition(workload, new[kind], old, now) if kind in new else old for kind, old in before.items()]
    made += [_condition(workload, each, {}, now) for kind, each in new.items() if kind not in before]
    fields: Object = {"conditions": made}
    if not admission:
        fields["admission"] = None
    same = made == list(before.values()) and (admission or not workload.status.get("admission"))
    return None if same else Told(workload, fields)


def _condition(workload: Workload, said: Said, before: Object, now: datetime) -> Object:
    status = "True" if said.status else "False"
    message = said.message[:LONGEST]
    if (before.get("status"), before.get("reason"), before.get("message")) == (status, said.reason, message):
        return before
    return {
        "type": said.kind,
        "status": status,
        "reason": said.reason,
        "message": message,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == status else to_text(now),
        "observedGeneration": int(workload.raw["metadata"].get("generation") or 0),
    }
