"""What accounts asked of the API server, as its audit log tells, beside what they may ask."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.kube import Object


@dataclass(frozen=True, order=True)
class Right:
    """A verb on a resource (with its subresource, `jobs/status`) of an API group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


@dataclass(frozen=True)
class Request:
    """One that was answered.

    Attributes:
        account: of the service account, as namespace:name.
        right: what it needed.
        namespace: in which; empty for the whole cluster.
        name: of the object; empty where there was none yet.
        made: it made the object.
        forbidden: the account had no right to it. (A quota's or an admission's refusal isn't that.)
    """

    account: str
    right: Right
    namespace: str
    name: str
    made: bool
    forbidden: bool


def requests(log: Path, since: str) -> Iterator[Request]:
    """Requests of service accounts for objects, from a time on (as in the log: RFC 3339, UTC)."""
    prefix = "system:serviceaccount:"
    with log.open() as lines:
        for line in lines:
            if prefix not in line:
                continue
            entry = json.loads(line)
            user, what = entry["user"]["username"], entry.get("objectRef", {})
            if "resource" not in what or not user.startswith(prefix) or entry["requestReceivedTimestamp"] < since:
                continue
            resource = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
            yield Request(
                account=user.removeprefix(prefix),
                right=Right(what.get("apiGroup", ""), resource, entry["verb"]),
                namespace=what.get("namespace", ""),
                name=what.get("name", ""),
                made=entry.get("responseStatus", {}).get("code") == 201,
                forbidden=entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid",
            )


def used(asked: Iterable[Request]) -> set[Right]:
    """Rights that were made use of. To make an object by a patch needs both of its rights."""
    found = set()
    for request in asked:
        if not request.forbidden:
            found.add(request.right)
            if request.made:
                found.add(Right(request.right.group, request.right.resource, "create"))
    return found


def granted(roles: Iterable[Object]) -> set[Right]:
    """All that these Roles and ClusterRoles grant."""
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
