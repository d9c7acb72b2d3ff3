"""A job's turn in Kueue's queue: when it may have pods, and when it is to give them up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rltrain.api.errors import InvalidManifest
from rltrain.api.status import ConditionType
from rltrain_operator.plan.actions import Plan
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.making_way import next_to_leave
from rltrain_operator.plan.observed import ChildKey, JobView, Observed
from rltrain_operator.plan.status import NOT_STARTED
from rltrain_operator.plan.training import has_trained, next_start
from rltrain_operator.plan.visit import Visit
from rltrain_operator.plan.workload import Said, Told, Workload, tell
from rltrain_operator.render import Object, OperatorConfig, manifest_hash
from rltrain_operator.render.gang import KUBERNETES, VERSIONS
from rltrain_operator.render.workload import flavors, placed, workload

FLAVOR = "ResourceFlavor"
AGAIN_SECONDS = 15.0
"""Until the next look for something that an administrator has to bring; nothing watches for it."""


def own_workload(view: JobView, seen: Observed) -> Workload | None:
    """The Workload of the job's name, if it is the job's."""
    return seen.workload if seen.workload is not None and seen.workload.owner == view.uid else None


def given_back(visit: Visit, plan: Plan) -> Plan:
    """A plan of a job that is to have no pods: its quota is for others once they are gone."""
    mine = own_workload(visit.view, visit.seen)
    return plan if mine is None or mine.deleting or visit.has_jobs else replace(plan, release=mine)


def ended(view: JobView, seen: Observed, plan: Plan, *, succeeded: bool) -> Plan:
    """A plan of a job that is finished: its Workload says so, and holds no quota by that."""
    mine = own_workload(view, seen)
    if mine is None or mine.finished or plan.needs_pods:
        return plan
    if succeeded:
        said = Said("Finished", True, "Succeeded", "The job succeeded.")
    else:
        said = Said("Finished", True, "Failed", "The job failed.")
    return replace(plan, tell=tell(mine, seen.now, [said]))


@dataclass(frozen=True)
class Queue:
    """What the queue makes of a visit.

    Attributes:
        visit: the visit.
        config: what the operator adds to a job.
        problems: what is wrong with the manifest.
    """

    visit: Visit
    config: OperatorConfig
    problems: InvalidManifest | None

    @property
    def _mine(self) -> Workload | None:
        return own_workload(self.visit.view, self.visit.seen)

    @property
    def _in_kueue(self) -> bool:
        job = self.visit.job
        return job is not None and job.spec.scheduling.in_kueue

    def plan(self) -> Plan | None:
        """The plan of a job that isn't to have pods now; None for one that may go on."""
        visit, mine = self.visit, self._mine
        if visit.seen.refusals:
            return None  # they are what is told
        if visit.has_jobs:
            if self._has_lost_its_place:
                return self._leave()
            return self._find() if self._begins else None
        if self._is_stale and mine is not None:
            return replace(self._waits("The former manifest's place in the queue is given up."), release=mine)
        if missing := self._missing_scheduler():
            return missing
        if not self._in_kueue:
            return None
        if visit.seen.workload is None:
            return self._enter()
        if mine is None or mine.deleting:
            words = f"Waiting for an earlier job's Workload {visit.seen.workload.name} to be gone."
            return replace(self._said("NamesakeTerminating", words), again_in=1.0)
        if mine.admitted:
            return self._find()
        if mine.reserved and mine.evicted:
            return replace(self._waits(mine.condition("Evicted").get("message", "")), tell=self._requeued(mine))
        return self._waits(mine.words)

    def placed(self) -> Visit:
        """The visit of a job that may go on, with Jobs that go where its quota is."""
        mine = self._mine
        if mine is None or not self._begins:
            return self.visit
        found = {name: made for (kind, name), made in self.visit.seen.found.items() if made and kind == FLAVOR}
        if not found.keys() >= set(flavors(mine.raw)):
            return self.visit  # refused, which is what is told
        jobs = placed(self._jobs, mine.raw, found)
        rest = [child for child in self.visit.desired if child["kind"] != "Job"]
        return replace(self.visit, desired=[*rest, *jobs])

    def reported(self, plan: Plan) -> Plan:
        """The plan of a job that goes on, with what Kueue is to know of its pods."""
        mine = self._mine
        if mine is None or not mine.admitted or plan.needs_pods:
            return plan
        before = mine.condition("PodsReady")
        lost = before.get("status") == "True" or before.get("reason") in ("WaitForRecovery", "Recovered")
        if self.visit.cluster().status == "True":
            again = before.get("reason") in ("WaitForRecovery", "Recovered")
            said = Said("PodsReady", True, "Recovered" if again else "Started", "All pods are ready.")
        else:
            said = Said("PodsReady", False, "WaitForRecovery" if lost else "WaitForStart", "Not all pods are ready.")
        return replace(plan, tell=tell(mine, self.visit.seen.now, [said]))

    @property
    def _jobs(self) -> list[Object]:
        return [child for child in self.visit.desired if child["kind"] == "Job"]

    @property
    def _begins(self) -> bool:
        """Whether Jobs are to be made with the quota that it has."""
        there = {job.name for job in self.visit.own}
        lacks = any(child["metadata"]["name"] not in there for child in self._jobs)
        may = self._mine is not None and self._mine.admitted and self._in_kueue
        return may and lacks and not self.visit.changed

    @property
    def _has_lost_its_place(self) -> bool:
        """Kueue wants the pods gone, or the Workload that they were made under is gone."""
        if self.visit.seen.served.kueue is None:
            return False
        if self._mine is not None:
            return not self._mine.admitted or self._mine.finished
        # Pods that were made before a queue was named stay until the edit holds.
        return self._in_kueue and not self.visit.changed and bool(self.visit.own)

    @property
    def _is_stale(self) -> bool:
        """The Workload is for other pods than the job would have now."""
        mine, job = self._mine, self.visit.job
        if mine is None or mine.deleting or job is None:
            return False
        return not self._in_kueue or mine.finished or mine.manifest_hash != manifest_hash(job)

    def _leave(self) -> Plan:
        """The pods go, the head's first; the quota is given back once they are gone."""
        mine = self._mine
        evicted = {} if mine is None else mine.condition("Evicted")
        reason = "Preempted" if evicted.get("reason") == "Preempted" else "Evicted"
        if mine is None:
            words = "The job's Workload is gone from the queue."
        else:
            words = evicted["message"] if mine.evicted and evicted.get("message") else mine.words
        how = "The driver saves a checkpoint; the pods leave, the head's first. Then the job is queued again."
        plan = self._said(reason, words, how)
        return replace(plan, retire=next_to_leave(self.visit))

    def _missing_scheduler(self) -> Plan | None:
        job, served = self.visit.job, self.visit.seen.served
        if job is None:
            return None
        scheduling = job.spec.scheduling
        if scheduling.in_kueue and served.kueue is None:
            words = f"spec.scheduling.queueName is {scheduling.queue_name}, but the cluster has no Kueue: install it."
            return replace(self._said("NoQueueing", words), look_around=True, again_in=AGAIN_SECONDS)
        if scheduling.gang == "Volcano" and not served.volcano:
            words = "spec.scheduling.gang is Volcano, but the cluster has no Volcano: install it."
            return replace(self._said("NoGangScheduling", words), look_around=True, again_in=AGAIN_SECONDS)
        if scheduling.gang == "Kubernetes" and served.pod_groups is None:
            words = (
                f"spec.scheduling.gang is Kubernetes, but the cluster serves no PodGroups of {KUBERNETES} in "
                f"{' or '.join(VERSIONS)}: turn them on, with the feature gates GenericWorkload and, in 1.36, "
                "GangScheduling."
            )
            return replace(self._said("NoGangScheduling", words), look_around=True, again_in=AGAIN_SECONDS)
        return None

    def _enter(self) -> Plan:
        """A Workload is made; before, the API server looks at the Jobs to be, which may wait for long."""
        job, seen = self.visit.job, self.visit.seen
        assert job is not None
        name, priority = job.spec.scheduling.priority_class_name, None
        if name is not None:
            key = ("PriorityClass", name)
            if key not in seen.found:
                return Plan(needs=(key,))
            found = seen.found[key]
            if found is None:
                words = f"There is no PriorityClass {name} (spec.scheduling.priorityClassName)."
                return replace(self._said("NoPriorityClass", words), again_in=AGAIN_SECONDS)
            priority = int(found.get("value") or 0)
        made = workload(job, self.config, seen.served, self._jobs, priority)
        plan = self._waits("The job enters it.")
        return replace(plan, rehearse=tuple(self._jobs), create=(made,))

    def _find(self) -> Plan | None:
        """Read what the job was admitted with, where its Jobs are still to be made."""
        mine = self._mine
        assert mine is not None
        keys: tuple[ChildKey, ...] = tuple((FLAVOR, name) for name in flavors(mine.raw))
        found: Mapping[ChildKey, Object | None] = self.visit.seen.found
        if any(key not in found for key in keys):
            return Plan(needs=keys)
        if lost := [name for kind, name in keys if found[kind, name] is None]:
            words = f"Kueue has admitted the job with ResourceFlavor {', '.join(lost)}, which isn't there."
            return replace(self._said("NoFlavor", words), again_in=AGAIN_SECONDS)
        return None

    def _requeued(self, mine: Workload) -> Told | None:
        """Without its pods the job holds no quota any more, and is to be admitted again."""
        evicted = mine.condition("Evicted")
        reason, words = evicted.get("reason") or "Evicted", evicted.get("message") or ""
        said = [
            # As Kueue does with its own kinds: other evictions bring a time of their own after which to try again.
            Said("Requeued", reason in ("Preempted", "NodeFailures"), reason, words),
            Said("QuotaReserved", False, "Pending", words),
            Said("Admitted", False, "NoReservation", "The workload has no reservation"),
            Said("PodsReady", False, "WaitForStart", "Not all pods are ready."),
        ]
        return tell(mine, self.visit.seen.now, said, admission=False)

    def _waits(self, words: str) -> Plan:
        job = self.visit.job
        name = job.spec.scheduling.queue_name if job is not None else None
        return self._said("Queued", f"Waits in queue {name}: {words}" if name else words)

    def _said(self, reason: str, words: str, how: str | None = None) -> Plan:
        view = self.visit.view
        later = next_start(view)
        next_ = Verdict("False", "Queued", f"The job has no pods yet. {later} once it is admitted.")
        verdicts: dict[ConditionType, Verdict] = {
            **NOT_STARTED,
            "Accepted": self.visit.accepted(self.problems),
            "ClusterReady": Verdict("False", reason, words),
            "Training": next_ if how is None else Verdict("False", reason, how),
        }
        return self.visit.said(verdicts, starting=has_trained(view))
