"""What an API server refused, in our words."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from rltrain.api import names
from rltrain.api.errors import ApiUnreachable, InvalidInput, RltrainError

_UNRESOLVED: Final = re.compile(r'User "[^"]*" cannot ')


@dataclass(frozen=True)
class Address:
    """Which API server a command talks to."""

    server: str
    context: str

    def __str__(self) -> str:
        return f"the Kubernetes API at {self.server} (context {self.context})"


class NoSuchObject(InvalidInput):
    """The API server has no object of that name."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name}")
        self.kind, self.name = kind, name


class Refused(InvalidInput):
    """The API server doesn't take an object as it is."""


def refusal(address: Address, status: int, body: bytes) -> RltrainError:
    """The error for a response that isn't a success."""
    said = _status(body)
    message = str(said.get("message") or body.decode(errors="replace")[:500]).strip()
    details: dict[str, Any] = said.get("details") or {}
    if status == 401:
        return ApiUnreachable(f"{address} refused the credentials: log in again, or give another --context")
    if status == 403 and _UNRESOLVED.search(message):
        return ApiUnreachable(f"{address} doesn't allow that: {message}")
    if status == 404 and details.get("kind") == "namespaces":
        name = details.get("name")
        return NoSuchObject("namespace", f"{name}: kubectl create namespace {name} makes it")
    if status == 404 and details.get("name"):
        kind = names.KIND if details.get("kind") == names.PLURAL else str(details.get("kind")).removesuffix("s")
        return NoSuchObject(kind, str(details["name"]))
    if status == 404:
        return ApiUnreachable(
            f"{address} doesn't know {names.KIND}: install rltrain there (helm install rltrain charts/rltrain), "
            "or only the CRD (rltrain crd | kubectl apply --server-side -f -)"
        )
    if status in (400, 409, 413, 422):
        return Refused(f"{address} refused it: {_causes(details) or message}")
    if status in (429, 500, 502, 503, 504):
        return ApiUnreachable(f"{address} can't serve requests now ({status}): {message}")
    return RltrainError(f"{address} refused it ({status}): {message}")


def _status(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _causes(details: dict[str, Any]) -> str:
    causes = [f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in details.get("causes") or []]
    return "\n  ".join(["", *causes]) if len(causes) > 1 else "".join(causes)
