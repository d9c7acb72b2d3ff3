"""Children of a job as the API server hands them out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from operator_kit.manifests import CONFIG, UID, job, manifest
from rltrain_operator.plan import ChildJob, JobView, Observed, Plan, PodReport, Refusal, child_key, make_plan
from rltrain_operator.render import ANNOTATION_GANG, ANNOTATION_HASH, ANNOTATION_MANIFEST, manifest_hash, render

Object = dict[str, Any]
START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def child(
    role: str = "head",
    *,
    uid: str = UID,
    desired: int = 1,
    conditions: tuple[tuple[str, str, str], ...] = (),
    made_for: Object | None = None,
    deleting: bool = False,
    begun: bool = True,
    gang: str | None = None,
    **counts: int,
) -> ChildJob:
    """A Job of ours, to which the Job controller has come; conditions are (type, reason, message)."""
    tree = made_for or manifest()
    hash_ = manifest_hash(job(**tree["spec"]))
    metadata: Object = {
        "name": f"cartpole-{role}",
        "namespace": "team",
        "uid": f"{role}-of-{uid}",
        "creationTimestamp": "2026-11-30T12:00:00Z",
        "labels": {"rltrain.dev/role": role, "rltrain.dev/job": "cartpole", "rltrain.dev/job-uid": uid},
        "annotations": {ANNOTATION_MANIFEST: hash_},
        "ownerReferences": [{"kind": "RLTrainingJob", "uid": uid, "controller": True}],
    }
    if gang is not None:
        metadata["annotations"][ANNOTATION_GANG] = gang
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    status: Object = {
        "conditions": [
            {"type": kind, "status": "True", "reason": reason, "message": message}
            for kind, reason, message in conditions
        ],
        **({"startTime": "2026-11-30T12:00:01Z"} if begun else {}),
        **counts,
    }
    spec = {"completions": desired, "parallelism": desired, "backoffLimit": 3}
    return ChildJob({"metadata": metadata, "spec": spec, "status": status})


def ready_jobs() -> tuple[ChildJob, ...]:
    """Both Jobs of a DQN job with all pods ready."""
    return child("head", active=1, ready=1), child("rollouts", active=1, ready=1)


def pod(
    role: str = "head",
    name: str = "cartpole-head-0-abcde",
    *,
    state: Object | None = None,
    init: Object | None = None,
    conditions: tuple[Object, ...] = (),
    created: int = 0,
    restarts: int = 0,
    last: Object | None = None,
) -> Object:
    """A pod whose only container is in a state, such as ``{"waiting": {...}}``."""
    status: Object = {"conditions": list(conditions)}
    if state is not None:
        container = {"name": "rltrain", "image": "trainer:1", "state": state, "restartCount": restarts}
        status["containerStatuses"] = [{**container, "lastState": last or {}}]
    if init is not None:
        status["initContainerStatuses"] = [{"name": "fetch-code", "image": "trainer:1", "state": init}]
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "labels": {"rltrain.dev/role": role, "batch.kubernetes.io/job-completion-index": "0"},
            "creationTimestamp": (START + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "status": status,
    }


def ended(code: int, message: str = "", reason: str = "Error", at: str = "2026-11-30T12:01:00Z") -> Object:
    """State of a container that has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": at}}


class World:
    """A job and its children, visited again and again: statuses carry over as they would in the API server."""

    def __init__(self, **spec: Any) -> None:
        self.raw = manifest(**spec)
        self.seen = Observed(now=START)

    def edit(self, **spec: Any) -> None:
        self.raw = {**self.raw, "spec": {**self.raw["spec"], **spec}}
        self.raw["metadata"] = {**self.raw["metadata"], "generation": self.raw["metadata"]["generation"] + 1}

    def report(self, **status: Any) -> None:
        """What the driver writes."""
        self.raw = {**self.raw, "status": {**self.raw.get("status", {}), **status}}

    def visit(
        self,
        *jobs: ChildJob,
        after: float = 0.0,
        pods: PodReport | None = None,
        refusals: tuple[Refusal, ...] = (),
    ) -> Plan:
        """Visit ``after`` seconds later; pods are only looked at where the plan asks for them."""
        now = self.seen.now + timedelta(seconds=after)
        self.seen = replace(self.seen, now=now, jobs=jobs, pods=None, refusals=refusals)
        plan = make_plan(JobView(self.raw), self.seen, CONFIG, "token")
        if plan.needs_pods and pods is not None:
            plan = make_plan(JobView(self.raw), replace(self.seen, pods=pods), CONFIG, "token")
        if plan.status is not None:
            theirs = {key: self.raw.get("status", {}).get(key) for key in ("progress", "checkpoint")}
            kept = {key: value for key, value in theirs.items() if value is not None}
            self.raw = {**self.raw, "status": {**kept, **plan.status}}
        return plan

    def all_applied(self) -> None:
        """Every small child is in place."""
        made = render(job(**self.raw["spec"]), CONFIG, "token", self.seen.served)
        applied = {child_key(each): each["metadata"]["annotations"][ANNOTATION_HASH] for each in made}
        self.seen = replace(self.seen, applied=applied)

    @property
    def status(self) -> Object:
        found: Object = self.raw.get("status", {})
        return found

    def condition(self, kind: str) -> Object:
        return JobView(self.raw).condition(kind)

    def said(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        condition = self.condition(kind)
        return condition["status"], condition["reason"]
