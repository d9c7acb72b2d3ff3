"""Carrying a plan out: creates, applies and deletes, with the API server's refusals as an answer."""

from base64 import b64encode
from dataclasses import dataclass, field

from rltrain_operator.plan import Change, ChildJob, ChildKey, JobView, Plan, Refusal, Told, Workload, child_key
from rltrain_operator.render import ANNOTATION_HASH, Object
from rltrain_operator.render.gang import KUBERNETES
from rltrain_operator.render.workload import KIND as WORKLOAD
from rltrain_operator.runtime.api import Api, ApiError
from rltrain_operator.runtime.cache import Store
from rltrain_operator.runtime.kinds import JOB, SECRET, kind_of


class JobGone(Exception):
    """The RLTrainingJob went away meanwhile."""


class NamespaceEnds(JobGone):
    """Its namespace is being deleted.

    Kubernetes removes the pods first. A failed pod of a Job with a limit for each index keeps the Job controller's
    finalizer until another pod takes over, which can't be made any more; only deleting the Job sets it free.
    """


@dataclass
class Executor:
    """Makes it so.

    Attributes:
        workloads: those that are known, brought up to date with what is done to one.
        applied: rendered hash of each child known to be in place, by its job's UID.
        token_since: when the Secret that is there was made, as RFC 3339, by its job's UID.
    """

    api: Api
    workloads: Store = field(default_factory=Store)
    applied: dict[str, dict[ChildKey, str]] = field(default_factory=dict)
    token_since: dict[str, str] = field(default_factory=dict)

    def forget(self, uid: str) -> None:
        """Drop what is known about a job that is gone."""
        self.applied.pop(uid, None)
        self.token_since.pop(uid, None)

    async def carry_out(self, view: JobView, plan: Plan) -> tuple[Refusal, ...]:
        """All of the plan's actions; what the API server turned down.

        Jobs are tried first without being made, so that one that is refused leaves no half of a job behind; but for the
        first, whose refusal leaves nothing that runs.

        Raises:
            JobGone: nothing is to be made any more.
        """
        for child in plan.rehearse:
            if refusal := await self._rehearse(child):
                return (refusal,)
        for job in plan.delete:
            await self._delete(view, job)
        for job in plan.retire:
            await self._delete(view, job, after_its_own=True)
        if plan.release is not None:
            await self._release(view, plan.release)
        if plan.tell is not None:
            await self._tell(view, plan.tell)
        for change in plan.change:
            if refusal := await self._change(view, change):
                return (refusal,)
        for child in [child for child in plan.apply if child["kind"] == JOB.name][1:]:
            if refusal := await self._apply(view, child, dry_run=True):
                return (refusal,)
        for child in plan.create:
            if refusal := await self._create(view, child):
                return (refusal,)
        for child in plan.apply:
            if refusal := await self._apply(view, child):
                return (refusal,)
        return ()

    async def _delete(self, view: JobView, job: ChildJob, *, after_its_own: bool = False) -> None:
        try:
            await self.api.delete(JOB, view.namespace, job.name, job.uid, after_its_own=after_its_own)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _release(self, view: JobView, workload: Workload) -> None:
        """Give back what a Workload holds: it goes."""
        try:
            await self.api.delete(kind_of(workload.raw), view.namespace, workload.name, workload.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        self.workloads.forget((view.namespace, workload.name), workload.uid)

    async def _tell(self, view: JobView, told: Told) -> None:
        """Set a Workload's status, unless it has changed meanwhile: then the next visit sees what it is."""
        workload, version = told.workload, told.workload.raw["metadata"]["resourceVersion"]
        try:
            written = await self.api.patch(
                *(kind_of(workload.raw), view.namespace, workload.name, workload.uid, {"status": told.status}),
                subresource="status",
                version=version,
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            return
        self.workloads.see(written)

    async def _rehearse(self, child: Object) -> Refusal | None:
        """Whether a Job would be taken, while one of its name is there."""
        metadata = {key: value for key, value in child["metadata"].items() if key != "name"}
        nameless = {**child, "metadata": {**metadata, "generateName": f"{child['metadata']['name']}-"}}
        try:
            await self.api.create(JOB, nameless, dry_run=True)
        except ApiError as error:
            return _refused(child, error)
        return None

    async def _change(self, view: JobView, change: Change) -> Refusal | None:
        """Set fields of this very Job."""
        try:
            await self.api.patch(JOB, view.namespace, change.job.name, change.job.uid, {"spec": dict(change.spec)})
        except ApiError as error:
            if error.code in (404, 409):
                return None  # gone, or another by now: the next visit sees what is there
            return _refused(change.job.raw | {"kind": JOB.name}, error)
        return None

    async def _create(self, view: JobView, child: Object) -> Refusal | None:
        is_ours = bool(child["metadata"].get("ownerReferences"))
        # Of a job that has other children it is most likely there: to ask costs the API server less than to refuse.
        is_likely = child["kind"] == SECRET.name and bool(self.applied.get(view.uid))
        there = await self._present(view, child) if is_likely else {}
        if not there:
            try:
                there = await self.api.create(kind_of(child), child, whole=child["kind"] == WORKLOAD)
            except ApiError as error:
                if error.code != 409:
                    return _refused(child, error)
                # A claim belongs to nobody and is shared by namesakes; a Secret must be this job's own.
                there = await self._present(view, child) if is_ours else {}
                if child["kind"] == WORKLOAD and not _is_foreign(view, there):
                    return None
        if is_ours and _is_foreign(view, there):
            return Refusal(*child_key(child), 409, "it belongs to another object")
        if child["kind"] == WORKLOAD:
            self.workloads.see(there)  # watched, unlike the rest
            return None
        if is_ours:
            self.token_since[view.uid] = there["metadata"]["creationTimestamp"]
        self._note(view, child)
        return None

    async def _apply(self, view: JobView, child: Object, *, dry_run: bool = False) -> Refusal | None:
        try:
            await self._make(view, child, dry_run=dry_run)
        except ApiError as error:
            there = await self._present(view, child) if error.code in (409, 422) else None
            if there is not None and _is_foreign(view, there):
                return Refusal(*child_key(child), 409, "it belongs to another object")
            if there is not None and error.code == 422 and kind_of(child).group == KUBERNETES:
                return await self._make_anew(view, child, there)
            return _refused(child, error)
        if not dry_run:
            self._note(view, child)
        return None

    async def _make(self, view: JobView, child: Object, *, dry_run: bool) -> None:
        """Create what isn't known to be there: that costs the API server half of an apply."""
        kind = kind_of(child)
        if child_key(child) not in self.applied.get(view.uid, {}):
            try:
                await self.api.create(kind, child, strict=True, dry_run=dry_run)
                return
            except ApiError as error:
                if error.code != 409:
                    raise
        await self.api.apply(kind, child, dry_run=dry_run)

    async def _make_anew(self, view: JobView, child: Object, there: Object) -> Refusal:
        """Delete what Kubernetes 1.36 won't change, its PodGroups: the next visit finds the way clear."""
        try:
            await self.api.delete(kind_of(child), view.namespace, child["metadata"]["name"], there["metadata"]["uid"])
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        return Refusal(*child_key(child), 409, "it makes way for another")

    async def _present(self, view: JobView, child: Object) -> Object:
        """The metadata of what has a child's name; empty if it is gone since."""
        try:
            return await self.api.metadata(kind_of(child), view.namespace, child["metadata"]["name"])
        except ApiError as error:
            if error.code == 404:
                return {}
            raise

    def _note(self, view: JobView, child: Object) -> None:
        known = self.applied.setdefault(view.uid, {})
        known[child_key(child)] = child["metadata"]["annotations"][ANNOTATION_HASH]


def _is_foreign(view: JobView, found: Object) -> bool:
    """Whether another owner's object is in the way; of one that is gone the next visit finds the way clear."""
    metadata = found.get("metadata", {})
    owners = [owner["uid"] for owner in metadata.get("ownerReferences", [])]
    return "deletionTimestamp" in metadata or view.uid not in owners


def _refused(child: Object, error: ApiError) -> Refusal:
    error = ApiError(error.code, error.reason, _hushed(child, error.message))
    if "is being terminated" in error.message:
        raise NamespaceEnds(error.message) from error
    if error.code == 404:
        raise JobGone(error.message) from error
    if error.code in (400, 403, 409, 422):
        return Refusal(*child_key(child), error.code, error.message)
    raise error


def _hushed(child: Object, message: str) -> str:
    """The API server's words without a secret that they, or an admission webhook's, may repeat."""
    for secret in child.get("stringData", {}).values():
        for form in (secret, b64encode(secret.encode()).decode()):
            message = message.replace(form, "…")
    return message
