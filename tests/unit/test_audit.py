"""What the cluster tests read from an audit log."""

import json
from pathlib import Path
from typing import Any

from e2e.audit import Right, granted, requests, used

OPERATOR = "system:serviceaccount:home:rltrain"


def entry(verb: str, resource: str, code: int = 200, decision: str = "allow", **changes: Any) -> dict[str, Any]:
    resource, _, subresource = resource.partition("/")
    what = {"apiGroup": "batch", "resource": resource, "namespace": "n", "name": "a"}
    return {
        "user": {"username": OPERATOR},
        "verb": verb,
        "objectRef": what | ({"subresource": subresource} if subresource else {}),
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
        "requestReceivedTimestamp": "2026-01-02T00:00:00.000000Z",
    } | changes


def test_rights_are_told_from_requests_of_accounts_since_the_beginning(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    entries = [
        entry("get", "jobs"),
        entry("patch", "jobs/status"),
        entry("delete", "jobs", code=403, decision="forbid"),
        entry("patch", "cronjobs", code=201),
        entry("create", "cronjobs", code=403),  # by a quota
        entry("watch", "jobs", requestReceivedTimestamp="2026-01-01T23:59:59.000000Z"),
        entry("update", "jobs", user={"username": "admin"}),
        entry("get", "", objectRef={}),
    ]
    log.write_text("".join(f"{json.dumps(each)}\n" for each in entries))

    asked = list(requests(log, since="2026-01-02"))

    assert {request.account for request in asked} == {"home:rltrain"}
    assert [str(request.right) for request in asked if request.forbidden] == ["delete jobs.batch"]
    assert {str(right) for right in used(asked)} == {
        "get jobs.batch",
        "patch jobs/status.batch",
        "patch cronjobs.batch",
        "create cronjobs.batch",
    }


def test_every_verb_of_every_rule_is_granted() -> None:
    rules = [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list", "get"]}]

    assert granted([{"rules": rules}, {"rules": rules}]) == {
        Right("", resource, verb) for resource in ("pods", "events") for verb in ("list", "get")
    }
