"""Jobs as a cluster has them, read leniently: the cluster may be newer than this program."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from rltrain.api import names
from rltrain.api.finite import finite
from rltrain.api.nearest import did_you_mean
from rltrain.api.seen import Object, SeenJob, claim_name
from rltrain.api.status import Condition, JobStatus
from rltrain.cli.cluster import Cluster
from rltrain.cli.refusals import NoSuchObject

EXIT_BY_REASON: Final = {"DeadlineExceeded": names.EXIT_DEADLINE}


@dataclass(frozen=True)
class JobView(SeenJob):
    """What the commands read of a job."""

    @property
    def plan(self) -> str:
        return str(self.raw["spec"].get("plan", "?"))

    @property
    def created(self) -> datetime:
        return parse_time(self.raw["metadata"]["creationTimestamp"])

    @property
    def claim(self) -> str:
        """Name of the claim with the run directory."""
        storage = (self.raw["spec"].get("checkpoint") or {}).get("storage") or {}
        return claim_name(self.name, storage.get("claim"))

    @property
    def has_own_claim(self) -> bool:
        """Whether the claim was made for the job, rather than given to it."""
        return self.claim == claim_name(self.name)

    @cached_property
    def status(self) -> JobStatus:
        return JobStatus.model_validate(self.raw.get("status") or {}, by_alias=True, by_name=False, extra="ignore")

    @property
    def state(self) -> str:
        return self.status.state or "Pending"

    def condition(self, kind: str) -> Condition | None:
        return next((found for found in self.status.conditions if found.type == kind), None)

    @property
    def finished(self) -> bool:
        return any(self._is_true(kind) for kind in ("Succeeded", "Failed"))

    @property
    def exit_code(self) -> int:
        """Of a finished job."""
        failed = self.condition("Failed")
        if failed is None or failed.status != "True":
            return names.EXIT_DONE
        return EXIT_BY_REASON.get(failed.reason, names.EXIT_FAILED)

    @property
    def why(self) -> str | None:
        """The sentence that tells best why the job is where it is."""
        for kind in ("Failed", "Succeeded"):
            if self._is_true(kind):
                return self._message(kind)
        told = [found for kind in ("Accepted", "ClusterReady", "Training") if (found := self.condition(kind))]
        if not told:
            return "The operator hasn't looked at it yet: is it running in this cluster?"
        return next((found.message for found in told if found.status != "True"), told[-1].message)

    def _is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    def _message(self, kind: str) -> str | None:
        found = self.condition(kind)
        return found.message if found is not None else None

    def to_json(self) -> dict[str, Any]:
        """For machines: snake_case, null for what isn't known or isn't a number."""
        known = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "plan": self.plan,
            "message": self.why,
            "claim": self.claim,
            "created_at": self.raw["metadata"]["creationTimestamp"],
            **self.status.model_dump(mode="json"),
            "state": self.state,
        }
        return {key: finite(value) for key, value in known.items()}


def get_job(cluster: Cluster, name: str) -> JobView:
    """A job by its name. Raises NoSuchObject with the nearest one."""
    try:
        return JobView(cluster.get(names.PLURAL, name))
    except NoSuchObject:
        others = [job.name for job in list_jobs(cluster)]
        here = f"namespace {cluster.namespace}{did_you_mean(name, others)}"
        raise NoSuchObject(names.KIND, f"{name} in {here}") from None


def list_jobs(cluster: Cluster, *, all_namespaces: bool = False) -> Iterator[JobView]:
    """The namespace's jobs, or all of them."""
    yield from map(JobView, cluster.select(names.PLURAL, all_namespaces=all_namespaces)["items"])


def pods_of(cluster: Cluster, job: JobView, role: str | None = None) -> list[Object]:
    """Pods of a job, or of one of its roles, oldest first."""
    labels = {names.LABEL_JOB_UID: job.uid} | ({names.LABEL_ROLE: role} if role is not None else {})
    found: list[Object] = cluster.select("pods", labels)["items"]
    return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def parse_time(text: str) -> datetime:
    """RFC 3339."""
    return datetime.fromisoformat(text)


def age(since: datetime | str) -> str:
    """How long ago, in one unit or two: 45s, 12m, 3h20m, 5d."""
    start = parse_time(since) if isinstance(since, str) else since
    return duration((datetime.now(UTC) - start).total_seconds())


def duration(seconds: float) -> str:
    """45s, 12m30s, 3h20m, 5d2h"""
    whole = max(0, int(seconds))
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for (name, size), (below, part) in pairwise(units):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{name}{f'{rest}{below}' if rest else ''}"
    return f"{whole}s"
