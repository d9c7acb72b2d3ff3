"""What the bench itself asks of the API server, at little cost to either: plain requests, and watches in threads."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import urllib3

from testbed.layout import API_SERVER

METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
Event = Callable[[str, dict[str, Any]], None]
"""Called with the kind of a change and the object."""


class Refused(Exception):
    """The API server's answer to a request that it didn't carry out."""


class Api:
    """Requests as the named user.

    Args:
        pki: folder with the cluster's certificates.
        user: whose of them to use.
    """

    def __init__(self, pki: Path, user: str) -> None:
        self._closed = threading.Event()
        self._pool = urllib3.PoolManager(
            ca_certs=str(pki / "ca.crt"),
            cert_file=str(pki / f"{user}.crt"),
            key_file=str(pki / f"{user}.key"),
            maxsize=16,
            block=False,
        )

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """The answer's object.

        Raises:
            Refused: any other answer than success.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        text = None if body is None else json.dumps(body)
        answer = self._pool.request(method, API_SERVER + path, body=text, headers=headers, timeout=30.0)
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {answer.data[:500].decode(errors='replace')}")
        found: dict[str, Any] = answer.json()
        return found

    def merge(self, path: str, body: object) -> None:
        """Patch some of an object's fields."""
        self.request("PATCH", path, body, "application/merge-patch+json")

    def watch(self, path: str, sink: Event, *, fields: str = "", accept: str = "application/json") -> None:
        """Tell of every change below a path, in a thread that ends with `close`; starts with what is there."""
        follow = threading.Thread(target=self._follow, args=(path, sink, fields, accept), daemon=True)
        follow.start()

    def close(self) -> None:
        """End all watches."""
        self._closed.set()
        self._pool.clear()

    def _follow(self, path: str, sink: Event, fields: str, accept: str) -> None:
        version = ""
        while not self._closed.is_set():
            query = {"watch": "true", "timeoutSeconds": "3000", "fieldSelector": fields, "resourceVersion": version}
            with suppress(urllib3.exceptions.HTTPError, OSError):  # the cluster ends, or the stream is cut: go on
                for change in self._stream(path, {key: value for key, value in query.items() if value}, accept):
                    if change["type"] == "ERROR":
                        version = ""
                        break
                    version = change["object"]["metadata"]["resourceVersion"]
                    sink(change["type"], change["object"])
            self._closed.wait(0.2)

    def _stream(self, path: str, query: dict[str, str], accept: str) -> Iterator[dict[str, Any]]:
        answer = self._pool.request(
            "GET",
            API_SERVER + path,
            fields=query,
            headers={"Accept": accept},
            preload_content=False,
            timeout=urllib3.Timeout(connect=5.0, read=None),
        )
        try:
            rest = b""
            while not self._closed.is_set() and (part := answer.read1()):
                *lines, rest = (rest + part).split(b"\n")
                yield from map(json.loads, lines)
        finally:
            answer.close()
