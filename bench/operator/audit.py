"""Who asked what of the API server, from its audit log."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass
class Audit:
    """Requests of one user since the last time somebody asked."""

    log: Path
    user: str
    _read: int = field(default=0, init=False)

    def news(self) -> Counter[str]:
        """How often each "verb resource" was answered since the last call; a watch counts when it begins."""
        found: Counter[str] = Counter()
        with self.log.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # still being written
                self._read += len(line)
                if (said := request(json.loads(line), self.user)) is not None:
                    found[said] += 1
        return found


def request(event: dict[str, object], user: str) -> str | None:
    """ "verb resource" of a user's request, once a request; None for other users' and for its later stages."""
    who, what = event.get("user"), event.get("objectRef")
    assert isinstance(who, dict)
    if who.get("username") != user:
        return None
    verb, stage = str(event["verb"]), event.get("stage")
    if stage != ("ResponseStarted" if verb == "watch" else "ResponseComplete"):
        return None
    if not isinstance(what, dict):
        return f"{verb} {str(event.get('requestURI')).partition('?')[0]}"
    kind = "/".join(str(what[key]) for key in ("resource", "subresource") if what.get(key))
    return f"{verb} {kind}"


def writes(requests: Counter[str]) -> int:
    """How many of the requests change something, or would but for `dryRun`."""
    return sum(count for said, count in requests.items() if said.split()[0] in WRITES)
