"""How a job ended: from the head Job, the head's last words and the driver's last report."""

import json
import re
from collections.abc import Sequence

from rltrain.api import names
from rltrain_operator.plan.conditions import Verdict
from rltrain_operator.plan.observed import ChildJob, JobView, PodReport, text_of
from rltrain_operator.render import Object
from rltrain_operator.render.pod import CONTAINER

_REASON = re.compile(r"^[A-Za-z]([A-Za-z0-9_]{0,126}[A-Za-z0-9])?$")
_BY_EXIT_CODE = {
    names.EXIT_INVALID: "InvalidManifest",
    names.EXIT_DEADLINE: "DeadlineExceeded",
}


def succeeded(view: JobView, report: PodReport) -> Verdict:
    """The verdict on a head Job that is complete."""
    said = _words(last_ending(report.pods))
    stop = text_of(said.get("stop_reason") or view.progress.get("stopReason")) or "a stop criterion"
    value = said.get("episode_return_mean", view.progress.get("episodeReturnMean"))
    steps = said.get("env_steps", view.progress.get("envSteps"))
    facts = [f"stopped by {stop}"]
    if isinstance(value, int | float):
        facts.append(f"mean return {value:.6g}")
    if isinstance(steps, int):
        facts.append(f"{steps} env steps")
    message = ", ".join(facts)
    return Verdict("True", "StopCriterionReached", f"{message[0].upper()}{message[1:]}.")


def failed(view: JobView, head: ChildJob, report: PodReport) -> Verdict:
    """The verdict on a head Job that has given up: the driver's own reason wherever it left one."""
    ended = last_ending(report.pods)
    said = _words(ended)
    condition = head.failed or {}
    reason = said.get("reason") if _REASON.match(text_of(said.get("reason"))) else None
    if reason is None and ended is not None:
        code = int(ended.get("exitCode") or 0)
        reason = "OutOfMemory" if ended.get("reason") == "OOMKilled" else _BY_EXIT_CODE.get(code)
    cause = text_of(said.get("message")) or (ending(ended) if ended else "")
    if condition.get("reason") != "PodFailurePolicy":
        times = view.restarts + max(head.count("failed"), head.max_restarts + 1)
        limit = view.restarts + head.max_restarts
        tried = f"The head failed {times} times, which uses up runPolicy.maxRestarts ({limit})."
        cause = f"{tried} The last time: {cause}" if cause else tried
        reason = reason or "RestartsExhausted"
    return Verdict("True", reason or "TrainingFailed", cause or text_of(condition.get("message")) or "The head failed.")


def last_ending(pods: Sequence[Object]) -> Object | None:
    """How the head's container ended the last time that it did."""
    endings = [
        container["state"]["terminated"]
        for pod in pods
        if pod["metadata"].get("labels", {}).get(names.LABEL_ROLE) == names.HEAD
        for container in [
            *(pod.get("status", {}).get("initContainerStatuses") or []),
            *(pod.get("status", {}).get("containerStatuses") or []),
        ]
        if container.get("state", {}).get("terminated")
        and (container["name"] == CONTAINER or container["state"]["terminated"].get("exitCode"))
    ]
    return max(endings, key=lambda ended: str(ended.get("finishedAt") or ""), default=None)


def ending(ended: Object) -> str:
    """An ended container's exit code and last words, for people."""
    words = _words(ended)
    said = text_of(words.get("message")) or text_of(ended.get("message")).strip()
    how = f"exited {ended.get('exitCode', '?')}"
    if ended.get("reason") not in (None, "Error", "Completed"):
        how = f"{how} ({ended['reason']})"
    return f"{how}: {said}" if said else how


def _words(ended: Object | None) -> Object:
    """What the driver left in its termination message; a user's code may have left anything there."""
    try:
        said = json.loads((ended or {}).get("message") or "")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
