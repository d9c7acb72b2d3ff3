"""One look at a job that isn't finished: where it stands and what comes next."""

from dataclasses import dataclass, replace
from datetime import timedelta

from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain.api.status import ConditionType
from rltrain_operator.plan import outcome
from rltrain_operator.plan.actions import CREATE_ONLY, Plan, child_key
from rltrain_operator.plan.backoff import head_in_long_wait
from rltrain_operator.plan.clean_up import leaving
from rltrain_operator.plan.conditions import Verdict, Verdicts, events
from rltrain_operator.plan.diagnosis import diagnose
from rltrain_operator.plan.observed import ChildJob, JobView, Observed
from rltrain_operator.plan.sizes import changes, resized
from rltrain_operator.plan.status import NOT_STARTED, is_same, status
from rltrain_operator.plan.times import to_time
from rltrain_operator.plan.training import has_trained, training
from rltrain_operator.render import ANNOTATION_HASH, ANNOTATION_MANIFEST, Object
from rltrain_operator.render.gang import KIND as GANG
from rltrain_operator.render.gang import fixes_sizes

POD_GRACE = timedelta(seconds=4)
"""How long a cluster may be unready before its pods are looked at."""
BUSY_GRACE = timedelta(seconds=15)
"""The same while the Job controller has work to do with it, as for long when many jobs are made at once."""
CLASH_SECONDS = 1.0
"""Until the next try when a namesake's child is in the way: nothing watches most of them."""
ACCEPTED = Verdict("True", "Accepted", "The manifest is valid.")

_PASSED = frozenset(
    {"Creating", "NamesakeTerminating", "ChildRefused", "InvalidManifest", "InvalidTemplate", "Finished", "NoPods"}
    | {"Queued", "NoQueueing", "NoGangScheduling", "NoPriorityClass", "NoFlavor"}
)
"""Reasons that are over once the Jobs are there."""


@dataclass(frozen=True)
class Visit:
    """What is known on this visit.

    Attributes:
        view: the job.
        seen: its children.
        own: Jobs that are its own and stay.
        job: the manifest; None when it isn't valid.
        desired: the children it should have.
    """

    view: JobView
    seen: Observed
    own: tuple[ChildJob, ...]
    job: RLTrainingJob | None
    desired: list[Object]

    def invalid(self, problems: InvalidManifest) -> Plan:
        """Nothing is made; the job lives on once its manifest is mended."""
        message = "\n".join(str(problem) for problem in problems.problems)
        waiting = Verdict("False", "InvalidManifest", "Nothing is made until the manifest is valid.")
        return self.said(
            {
                "Accepted": Verdict("False", "InvalidManifest", message),
                "ClusterReady": waiting,
                "Training": waiting,
                "Succeeded": NOT_STARTED["Succeeded"],
                "Failed": Verdict("True", "InvalidManifest", message),
            }
        )

    def finish(self, head: ChildJob) -> Plan:
        """The head's Job has ended: so has the job, for good."""
        if self.seen.pods is None:
            return Plan(needs_pods=True)
        if head.complete:
            done = outcome.succeeded(self.view, self.seen.pods)
            failed = Verdict("False", "Succeeded", "The job succeeded.")
        else:
            failed = outcome.failed(self.view, head, self.seen.pods)
            done = Verdict("False", "Failed", "The job failed.")
        return self._end(done, failed, leaving(self.view, self.own, failed=not head.complete))

    @property
    def has_jobs(self) -> bool:
        """Whether it has pods, or may have: Jobs on their way out stay to be seen until theirs are gone."""
        return any(job.owner == self.view.uid for job in self.seen.jobs)

    def past_deadline(self, job: RLTrainingJob) -> bool:
        left = self._startup_left(job)
        return left is not None and left <= 0

    def give_up(self, job: RLTrainingJob) -> Plan:
        """Training didn't begin in time; whatever kept it is the cause."""
        if self.seen.pods is None:
            return Plan(needs_pods=True)
        cause = self.cluster()
        if cause.status == "True":
            cause = training(self.view, self.own)
        limit = job.spec.run_policy.startup_deadline_seconds
        message = f"Training didn't begin within {limit} s (runPolicy.startupDeadlineSeconds). {cause.message}"
        failed = Verdict("True", "StartupDeadlineExceeded", message)
        return self._end(Verdict("False", "Failed", "The job failed."), failed, self.own)

    def go_on(self, problems: InvalidManifest | None) -> Plan:
        """Make what is missing, and tell how it goes."""
        cluster = self.cluster()
        unready_for = self._unready_for(cluster)
        grace = BUSY_GRACE if self._under_way else POD_GRACE
        look = unready_for is not None and (unready_for >= grace.total_seconds() or self._has_just_lost_pods)
        if look and self.seen.pods is None and not self.seen.refusals and self._all_made:
            return Plan(needs_pods=True)
        accepted = self.accepted(problems)
        verdicts: dict[ConditionType, Verdict] = {
            **NOT_STARTED,
            "Accepted": accepted,
            "ClusterReady": cluster,
            "Training": training(self.view, self.own),
        }
        if accepted.status == "False" and not self.own:
            verdicts["Failed"] = replace(accepted, status="True")
        waiting = head_in_long_wait(self.view, self.own, cluster, unready_for)
        said = self.said(verdicts, restarts=0 if waiting is None else waiting.count("failed"))
        missing = (
            self._missing(cluster.reason)
            if problems is None and accepted.reason == "Accepted" and not self._namesakes
            else ()
        )
        return replace(
            said,
            delete=() if waiting is None else (waiting,),
            change=tuple(changes(self.view, self.own, self.desired)) if accepted.reason == "Accepted" else (),
            create=tuple(child for child in missing if child["kind"] in CREATE_ONLY),
            apply=tuple(child for child in missing if child["kind"] not in CREATE_ONLY),
            again_in=self._again_in(unready_for),
        )

    @property
    def _namesakes(self) -> tuple[ChildJob, ...]:
        """Jobs of an earlier job of this name that aren't gone yet, or of ours on their way out."""
        return tuple(job for job in self.seen.jobs if job not in self.own)

    @property
    def changed(self) -> bool:
        """The manifest isn't the one that the Jobs were made for, and they can't follow it."""
        current = {child["metadata"]["annotations"].get(ANNOTATION_MANIFEST) for child in self.desired}
        if self.job is None or not self.own:
            return False
        if any(job.manifest_hash not in current for job in self.own):
            return True
        return fixes_sizes(self.job.spec.scheduling, self.seen.served) and any(map(self._has_other_size, self.desired))

    def _has_other_size(self, child: Object) -> bool:
        """Whether a Job has another number of pods than it should, or the gang another least one."""
        kind, name = child_key(child)
        if kind == GANG:
            return self.seen.applied.get((kind, name)) not in (None, child["metadata"]["annotations"][ANNOTATION_HASH])
        return any(job.name == name and job.desired != child["spec"]["completions"] for job in self.own)

    @property
    def _all_made(self) -> bool:
        wanted = {child["metadata"]["name"] for child in self.desired if child["kind"] == "Job"}
        return bool(self.own) and (self.changed or wanted <= {job.name for job in self.own})

    def _missing(self, trouble: str) -> tuple[Object, ...]:
        there = {job.name for job in self.own}
        # Secrets and claims can't be listed: where pods lack something it may be one that was there before.
        may_be_lost = trouble in ("ContainerCannotStart", "PodSetupFailed")

        def is_missing(child: Object) -> bool:
            kind, name = child_key(child)
            if kind == "Job":
                # Templates can't be changed: a Job that is there stays as it is.
                return name not in there
            known = self.seen.applied.get((kind, name))
            if kind in CREATE_ONLY:
                return known is None or may_be_lost
            rendered: str = child["metadata"]["annotations"][ANNOTATION_HASH]
            return known != rendered

        return tuple(child for child in self.desired if is_missing(child))

    def accepted(self, problems: InvalidManifest | None) -> Verdict:
        if problems is not None:
            message = "\n".join(str(problem) for problem in problems.problems)
            words = f"The edited manifest isn't valid, so the job stays as it was.\n{message}"
            return Verdict("False", "InvalidManifest", words)
        for refusal in self.seen.refusals:
            if refusal.code in (400, 422) or self.changed:
                words = f"The API server refuses {refusal.kind} {refusal.name}: {refusal.message}"
                return Verdict("False", "InvalidTemplate", words)
        if self.changed:
            words = (
                "The job goes on as it was made: the edited manifest holds once it is suspended and resumed, or at "
                "once with updateStrategy: Restart."
            )
            return Verdict("True", "ChangeNeedsRestart", words)
        return ACCEPTED

    def cluster(self) -> Verdict:
        """The ClusterReady condition."""
        if self._namesakes:
            names_ = ", ".join(job.name for job in self._namesakes)
            return Verdict("False", "NamesakeTerminating", f"Waiting for an earlier job's {names_} to be gone.")
        for refusal in () if self.changed else self.seen.refusals:
            child = f"{refusal.kind} {refusal.name}"
            if refusal.code == 409:
                return Verdict("False", "NamesakeTerminating", f"Waiting for an earlier job's {child} to be gone.")
            reason = "QuotaExceeded" if "exceeded quota" in refusal.message else "ChildRefused"
            return Verdict("False", reason, f"The API server refuses {child}: {refusal.message}")
        if not self._all_made:
            return NOT_STARTED["ClusterReady"]
        if all(job.complete or job.count("ready") >= job.desired for job in self.own):
            return Verdict("True", "PodsReady", "All pods are ready.")
        before = self.view.condition("ClusterReady")
        if self.seen.pods is None and before.get("status") == "False" and before["reason"] not in _PASSED:
            # Nobody has looked at the pods on this visit: what was found on the last one stands.
            return Verdict("False", before["reason"], before["message"])
        return diagnose(self.own, self.seen.pods)

    def _unready_for(self, cluster: Verdict) -> float | None:
        """Seconds since the cluster stopped being ready; None while it is."""
        if cluster.status == "True":
            return None
        before = self.view.condition("ClusterReady")
        if before.get("status") != "False":
            return 0.0
        return (self.seen.now - to_time(before["lastTransitionTime"])).total_seconds()

    @property
    def _under_way(self) -> bool:
        """Whether the Job controller hasn't come to a Job, or has only just changed one: little is to be seen yet."""
        return not all(job.begun for job in self.own) or self.seen.quiet_for < POD_GRACE.total_seconds()

    @property
    def _has_just_lost_pods(self) -> bool:
        """A pod that says why it goes is gone in a moment."""
        was_ready = self.view.condition("ClusterReady").get("status") == "True"
        return was_ready and any(job.count("terminating") for job in self.own)

    def _startup_left(self, job: RLTrainingJob) -> float | None:
        """Seconds until the startup deadline; None once training has begun."""
        started = self.view.status.get("startTime")
        if started is None or has_trained(self.view):
            return None
        limit = job.spec.run_policy.startup_deadline_seconds
        return limit - (self.seen.now - to_time(started)).total_seconds()

    def _again_in(self, unready_for: float | None) -> float | None:
        times = []
        if unready_for is not None:
            # Often at first, when somebody is watching, then ever more seldom.
            times.append(min(max(POD_GRACE.total_seconds() + 0.5, unready_for / 4), 60.0))
        if any(refusal.code == 409 for refusal in self.seen.refusals):
            times.append(CLASH_SECONDS)
        if self.job is not None and (left := self._startup_left(self.job)) is not None:
            times.append(max(left, 0.0) + 0.1)
        return min(times, default=None)

    def _end(self, succeeded: Verdict, failed: Verdict, delete: tuple[ChildJob, ...]) -> Plan:
        over = Verdict("False", "Finished", "The job is finished.")
        before = self.view.condition("Accepted")
        accepted = Verdict("True", before.get("reason", "Accepted"), before.get("message", "The manifest is valid."))
        verdicts: dict[ConditionType, Verdict] = {
            "Accepted": accepted if before.get("status") == "True" else ACCEPTED,
            "ClusterReady": over,
            "Training": over,
            "Succeeded": succeeded,
            "Failed": failed,
        }
        return replace(self.said(verdicts, final=True), delete=delete)

    def said(self, verdicts: Verdicts, *, final: bool = False, starting: bool = True, restarts: int = 0) -> Plan:
        made = status(self.view, verdicts, self.own, self.seen.now, final=final, starting=starting, restarts=restarts)
        if is_same(self.view, made):
            return Plan()
        sizes = resized(self.view, made.get("roles", ()))
        return Plan(status=made, events=(*events(self.view, made["conditions"]), *sizes))
