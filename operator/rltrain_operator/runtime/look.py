"""Looking at a job's pods, and at the events about those that don't come up."""

from collections.abc import Sequence

from rltrain.api import names
from rltrain_operator.plan import ChildJob, JobView, PodReport, wants_events
from rltrain_operator.render import Object
from rltrain_operator.runtime.api import Api, ApiError
from rltrain_operator.runtime.kinds import EVENT, NAMESPACE, POD

MOST_PODS = 200
"""Enough to say why; a job of a thousand ranks isn't read whole for it."""


async def look(api: Api, view: JobView, jobs: Sequence[ChildJob]) -> PodReport:
    """The job's pods as they are now."""
    own = f"{names.LABEL_JOB_UID}={view.uid}"
    pods = [pod async for pod in api.list(POD, view.namespace, labels=own, limit=MOST_PODS)]
    if len(pods) == MOST_PODS:
        # The head's tells most, and may be among the rest.
        head = f"{own},{names.LABEL_ROLE}={names.HEAD}"
        pods = [pod async for pod in api.list(POD, view.namespace, labels=head, limit=MOST_PODS)] + [
            pod for pod in pods if pod["metadata"]["labels"].get(names.LABEL_ROLE) != names.HEAD
        ]
    if any("deletionTimestamp" in pod["metadata"] for pod in pods) and await namespace_ends(api, view.namespace):
        return PodReport(tuple(pods), namespace_ends=True)
    warnings = {}
    for uid in wants_events(jobs, pods):
        if words := await _last_warning(api, view.namespace, uid):
            warnings[uid] = words
    return PodReport(tuple(pods), warnings)


async def namespace_ends(api: Api, namespace: str) -> bool:
    """Whether the namespace is being deleted, or gone."""
    try:
        found = await api.metadata(NAMESPACE, None, namespace)
    except ApiError as error:
        if error.code == 404:
            return True
        raise
    return "deletionTimestamp" in found["metadata"]


async def _last_warning(api: Api, namespace: str, uid: str) -> str | None:
    fields = f"involvedObject.uid={uid},type=Warning"
    found = [event async for event in api.list(EVENT, namespace, fields=fields, limit=MOST_PODS)]
    last = max(found, key=_time, default=None)
    return None if last is None else str(last.get("message") or last.get("reason") or "")


def _time(event: Object) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
