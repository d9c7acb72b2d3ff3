"""What the planner sees: views of objects as the API server hands them out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from rltrain.api import names
from rltrain.api.seen import Object, SeenJob
from rltrain_operator.plan.child import Child
from rltrain_operator.plan.times import to_time
from rltrain_operator.plan.workload import Workload
from rltrain_operator.render import ANNOTATION_GANG, NONE_SERVED, Served

ChildKey = tuple[str, str]
"""Kind and name of a child, in its job's namespace."""


@dataclass(frozen=True)
class JobView(SeenJob):
    """What the planner reads of a job."""

    @property
    def generation(self) -> int:
        return int(self.raw["metadata"].get("generation", 0))

    @property
    def identity(self) -> Object:
        """What of the metadata goes into the children."""
        return {"name": self.name, "namespace": self.namespace, "uid": self.uid}

    @property
    def spec(self) -> Object | None:
        return self.raw.get("spec")

    @property
    def suspended(self) -> bool:
        """Whether it is to have no pods; read by itself, for whatever else is wrong with the manifest."""
        return (self.spec or {}).get("suspend") is True

    @property
    def ttl_seconds(self) -> float | None:
        """How long it stays once it is finished; None for ever. Read by itself: a finished manifest isn't judged."""
        policy = (self.spec or {}).get("runPolicy")
        ttl = policy.get("ttlSecondsAfterFinished") if isinstance(policy, dict) else None
        return float(ttl) if isinstance(ttl, int) and not isinstance(ttl, bool) else None

    def clean_up_rule(self, *, failed: bool) -> str:
        """`runPolicy.cleanUp` for such an end; the default where it can't be read, as for the time to live."""
        policy = (self.spec or {}).get("runPolicy")
        rules = policy.get("cleanUp") if isinstance(policy, dict) else None
        rule = rules.get("onFailure" if failed else "onSuccess") if isinstance(rules, dict) else None
        return rule if rule in ("All", "Nothing") else "AllButHead"

    @property
    def status(self) -> Object:
        return self.raw.get("status") or {}

    @property
    def restarts(self) -> int:
        """Failures of heads whose Jobs were made anew since."""
        return int(self.status.get("restarts") or 0)

    @property
    def progress(self) -> Object:
        """The driver's report; empty before its first."""
        return self.status.get("progress") or {}

    @property
    def checkpoint(self) -> Object:
        """The newest that the driver has told of; empty before its first."""
        return self.status.get("checkpoint") or {}

    def condition(self, kind: str) -> Object:
        """A condition; empty when it was never set."""
        conditions = self.status.get("conditions") or []
        return next((entry for entry in conditions if entry["type"] == kind), {})


@dataclass(frozen=True)
class ChildJob(Child):
    """A Job that carries the name of one of ours."""

    @property
    def role(self) -> str:
        return str(self.raw["metadata"].get("labels", {}).get(names.LABEL_ROLE, ""))

    @property
    def gang(self) -> str | None:
        """Who places its pods together with those of the others; None for a Job of an earlier release."""
        found = self.raw["metadata"].get("annotations", {}).get(ANNOTATION_GANG)
        return None if found is None else str(found)

    @property
    def created(self) -> datetime:
        return to_time(self.raw["metadata"]["creationTimestamp"])

    @property
    def desired(self) -> int:
        return int(self.raw["spec"].get("completions") or 0)

    @property
    def max_restarts(self) -> int:
        return int(self.raw["spec"].get("backoffLimit") or 0)

    @property
    def begun(self) -> bool:
        """Whether the Job controller has come to it: before that there is nothing to be seen of pods."""
        return "startTime" in self.raw.get("status", {})

    def count(self, what: str) -> int:
        """A counter of the Job's status: active, ready, failed or succeeded."""
        return int(self.raw.get("status", {}).get(what) or 0)

    @cached_property
    def _conditions(self) -> Mapping[str, Object]:
        conditions = self.raw.get("status", {}).get("conditions") or []
        return {entry["type"]: entry for entry in conditions if entry.get("status") == "True"}

    @property
    def complete(self) -> bool:
        return "Complete" in self._conditions

    @property
    def failed(self) -> Object | None:
        """The condition of a Job that has given up."""
        return self._conditions.get("Failed")

    @property
    def finished(self) -> bool:
        return self.complete or self.failed is not None


@dataclass(frozen=True)
class Refusal:
    """An apply that the API server turned down.

    Attributes:
        kind, name: the child.
        code: HTTP status; 409 stands for a child of a namesake that isn't gone yet.
        message: the API server's words.
    """

    kind: str
    name: str
    code: int
    message: str


@dataclass(frozen=True)
class PodReport:
    """Pods of a job, and why others of it weren't made.

    Attributes:
        pods: the job's pods as they are.
        warnings: last warning event by the UID of the Job or pod that it is about.
        namespace_ends: the namespace is being deleted.
    """

    pods: tuple[Object, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=dict)
    namespace_ends: bool = False


@dataclass(frozen=True)
class Observed:
    """All that is known about a job's children.

    Attributes:
        now: time of the visit.
        jobs: Jobs of our names, whoever owns them.
        quiet_for: seconds since one of them last changed.
        applied: rendered hash of each child known to be there as we applied it.
        token_since: when the Secret with Ray's token was made, where that is known.
        pods: the job's pods; None unless they were asked for.
        refusals: what the API server said to this visit's applies.
        served: schedulers that the cluster has.
        workload: Kueue's Workload of the job's name, whoever owns it.
        found: objects of the whole cluster that the plan asked for; None for one that isn't there.
    """

    now: datetime
    jobs: tuple[ChildJob, ...] = ()
    quiet_for: float = float("inf")
    applied: Mapping[ChildKey, str] = field(default_factory=dict)
    token_since: datetime | None = None
    pods: PodReport | None = None
    refusals: tuple[Refusal, ...] = ()
    served: Served = NONE_SERVED
    workload: Workload | None = None
    found: Mapping[ChildKey, Object | None] = field(default_factory=dict)


def text_of(value: Any, limit: int = 2048) -> str:
    """Text from a place that a user's code may have written to, cut to a length that fits a condition."""
    text = value if isinstance(value, str) else ""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
