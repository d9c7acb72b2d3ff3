"""Why a job's pods aren't ready, in the kubelet's, the scheduler's or the Job controller's words."""

import re
from collections.abc import Callable, Iterator, Sequence

from rltrain.api import names
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.observed import ChildJob, PodReport, text_of
from rltrain_operator.plan.outcome import ending
from rltrain_operator.render import Object

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
_CONFIG = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreStartHookError"}
_BACK_OFF = re.compile(r'^Back-off pulling image ".*?": (ErrImagePull|ErrImageNeverPull): ')
_POD_NAME = re.compile(r'^Error creating: pods "[^"]*" is forbidden: ')
"""Each try has a new name: the message must not change with it."""
_NO_NODE = re.compile(r"\d+/\d+ nodes are ")
"""In Kubernetes' own scheduler's words and in Volcano's, which go on differently."""
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"

Finding = tuple[str, str]
"""Reason and the words about one pod."""


def diagnose(jobs: Sequence[ChildJob], report: PodReport | None) -> Verdict:
    """The verdict on a cluster that isn't ready; the head's troubles come first."""
    waiting = "; ".join(f"{job.role} {job.count('ready')}/{job.desired} ready" for job in jobs)
    calm = Verdict("False", "PodsStarting", f"Waiting for pods: {waiting}.")
    if report is None:
        return calm
    pods = newest(report.pods)
    # The others of a gang say no more than that they wait for the pod that fits nowhere.
    waits = sorted(pods, key=lambda pod: not _fits_nowhere(pod, report))
    for probes, looked_at in ((_TROUBLES, pods), ((_disruption,), _disrupted(report.pods)), (_WAITS, waits)):
        for probe in probes:
            if found := _by_reason(probe, looked_at, report):
                return found
    for job in jobs:
        refused = report.warnings.get(job.uid)
        if refused and _lacks_pods(job):
            words = _POD_NAME.sub("", text_of(refused))
            return Verdict("False", _refusal_reason(refused), f"No pod can be made for {job.role}: {words}")
    return calm


def wants_events(jobs: Sequence[ChildJob], pods: Sequence[Object]) -> Iterator[str]:
    """UIDs of the objects whose events may tell what the pods themselves don't."""
    for job in jobs:
        if _lacks_pods(job):
            yield job.uid
    stuck = next((pod for pod in newest(pods) if _is_being_set_up(pod)), None)
    if stuck is not None:
        yield str(stuck["metadata"]["uid"])


def _lacks_pods(job: ChildJob) -> bool:
    return job.count("active") + job.count("succeeded") < job.desired


def newest(pods: Sequence[Object]) -> list[Object]:
    """The latest pod of each role and index, the head's first; pods on their way out don't count."""
    latest: dict[tuple[str, str], Object] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", ""))):
        if "deletionTimestamp" not in pod["metadata"]:
            latest[(_role(pod), pod["metadata"].get("labels", {}).get(INDEX_LABEL, "0"))] = pod
    return sorted(latest.values(), key=lambda pod: _role(pod) != names.HEAD)


def _by_reason(
    probe: Callable[[Object, PodReport], Finding | None], pods: list[Object], report: PodReport
) -> Verdict | None:
    findings = [(pod, found) for pod in pods if (found := probe(pod, report))]
    if not findings:
        return None
    pod, (reason, words) = findings[0]
    more = sum(found[0] == reason for _, found in findings) - 1
    others = f" (and {more} more)" if more else ""
    return Verdict("False", reason, f"Pod {pod['metadata']['name']}{others}: {text_of(words)}")


def _statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or []
    yield from status.get("containerStatuses") or []


def _image(pod: Object, _: PodReport) -> Finding | None:
    for container in _statuses(pod):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in _PULL:
            # The kubelet alternates between the error and its back-off: both are told as the error.
            words = _BACK_OFF.sub("", waiting.get("message") or "") or waiting["reason"]
            image = container.get("image", "")
            return "ImagePullFailed", words if image in words else f"image {image}: {words}"
    return None


def _config(pod: Object, _: PodReport) -> Finding | None:
    for container in _statuses(pod):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in _CONFIG:
            return "ContainerCannotStart", f"{waiting['reason']}: {waiting.get('message', '')}"
    return None


def _init(pod: Object, _: PodReport) -> Finding | None:
    for container in pod.get("status", {}).get("initContainerStatuses") or [] if not _target(pod) else []:
        if died := _died(container):
            return "InitContainerFailed", f"init container {container['name']} {died[1]}"
    return None


def _crash(pod: Object, _: PodReport) -> Finding | None:
    for container in pod.get("status", {}).get("containerStatuses") or [] if not _target(pod) else []:
        if died := _died(container):
            return died[0], f"container {container['name']} {died[1]}"
    return None


def _died(container: Object) -> Finding | None:
    """How a container ended that is down now, if it ended badly."""
    state = container.get("state", {})
    ended = state.get("terminated")
    if ended is None and (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
        ended = container.get("lastState", {}).get("terminated") or {}
    if ended is None or ended.get("exitCode", 1) == 0:
        return None
    times = container.get("restartCount") or 0
    again = f", restarted {times} times" if times else ""
    return ("OutOfMemory" if ended.get("reason") == "OOMKilled" else "PodsFailing"), f"{ending(ended)}{again}"


def _target(pod: Object) -> Object | None:
    """The condition of a pod that has to go for the cluster's sake, whatever its containers say then."""
    conditions = pod.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "DisruptionTarget" and each["status"] == "True"), None)


def _disruption(pod: Object, _: PodReport) -> Finding | None:
    target = _target(pod)
    if target is None:
        return None
    words = pod["status"].get("message") or target.get("message") or target.get("reason") or ""
    return "Preempted" if target.get("reason") == "PreemptionByScheduler" else "Evicted", words


def _disrupted(pods: Sequence[Object]) -> list[Object]:
    """Pods that had to go, also those on their way out, whose place isn't taken by one that is ready."""

    def place(pod: Object) -> tuple[str, str]:
        return _role(pod), pod["metadata"].get("labels", {}).get(INDEX_LABEL, "0")

    taken = {place(pod) for pod in newest(pods) if not _target(pod) and _is_ready(pod)}
    found = [pod for pod in pods if _target(pod) and place(pod) not in taken]
    return sorted(found, key=lambda pod: _role(pod) != names.HEAD)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _scheduling(pod: Object, _: PodReport) -> Finding | None:
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason") or "Unschedulable", condition.get("message") or "not scheduled yet"
    return None


def _fits_nowhere(pod: Object, report: PodReport) -> bool:
    found = _scheduling(pod, report)
    return found is not None and _NO_NODE.search(found[1]) is not None


def _setting_up(pod: Object, report: PodReport) -> Finding | None:
    words = report.warnings.get(str(pod["metadata"]["uid"]))
    return ("PodSetupFailed", words) if words and _is_being_set_up(pod) else None


def _is_being_set_up(pod: Object) -> bool:
    return any(
        (container.get("state", {}).get("waiting") or {}).get("reason") in ("ContainerCreating", "PodInitializing")
        for container in _statuses(pod)
    )


_TROUBLES = (_image, _config, _init, _crash)
_WAITS = (_scheduling, _setting_up)


def _role(pod: Object) -> str:
    return str(pod["metadata"].get("labels", {}).get(names.LABEL_ROLE, ""))


def _refusal_reason(words: str) -> str:
    if "exceeded quota" in words:
        return "QuotaExceeded"
    return "PodSecurityViolated" if "violates PodSecurity" in words else "PodsRefused"
