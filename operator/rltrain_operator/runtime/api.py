"""A thin client of the Kubernetes API: JSON in, JSON out, with a rate limit and retries.

kopf brings aiohttp and the reading of credentials: another client would cost memory, and twice the time for a request.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict, Unpack

import aiohttp
import kopf

from rltrain.api import names
from rltrain_operator.render import Object
from rltrain_operator.runtime.kinds import Kind

logger = logging.getLogger(__name__)

TRIES: Final = 5
PAGE: Final = 100
TIMEOUT_SECONDS: Final = 30.0
WATCH_SECONDS: Final = 300
"""The server ends a watch after so long."""
SILENCE_SECONDS: Final = 90.0
"""The server says at least once in a minute or so how far a watch has come; one without a word is dead."""
_AGAIN = frozenset({429, 500, 502, 503, 504})
_METHODS: Final = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_UNTYPED = "failed to create typed patch object"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ApiError(Exception):
    """The API server's refusal, in its words."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


class Unreachable(Exception):
    """No answer, after several tries."""


class NotLeading(Exception):
    """A write that wasn't sent, for another may lead by now."""


Count = Callable[[str, str, str], None]
"""Told of each request: verb, resource (with its subresource) and status code, which is empty where no answer came."""


class Which(TypedDict, total=False):
    """Which objects of a kind are listed, and how: with these labels or fields, at most so many, without content."""

    labels: str | None
    fields: str | None
    limit: int | None
    metadata_only: bool


@dataclass(frozen=True)
class Page:
    """A part of a list.

    Attributes:
        items: its objects.
        version: the whole list's resource version.
    """

    items: list[Object]
    version: str


@dataclass
class RateLimit:
    """A token bucket.

    Attributes:
        per_second: tokens that come in.
        burst: tokens that the bucket holds.
    """

    per_second: float
    burst: float
    _free_at: float = field(default=0.0, init=False)

    async def take(self) -> None:
        """Wait for a token."""
        now = asyncio.get_running_loop().time()
        # The bucket as one time: when it would be empty, were all its tokens taken now.
        self._free_at = max(self._free_at, now - self.burst / self.per_second) + 1 / self.per_second
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


def log_in(settings: kopf.OperatorSettings) -> kopf.ConnectionInfo | None:
    """Credentials of the pod's service account, or of the kubeconfig; None where there is neither."""
    return kopf.login_with_service_account(settings=settings) or kopf.login_with_kubeconfig(settings=settings)


class Api:
    """Requests of the operator, all with its field manager. Made, used and closed in one event loop.

    Args:
        requests_per_second: longest sustained rate.
        credentials: read anew when the API server doesn't take them any more, for a pod's token is exchanged often.
        tries: how often a request is sent to a server that is busy, broken or away.
        timeout: seconds for one try.
        count: told of each try.

    Attributes:
        may_write: asked right before each write is sent, however long that had to wait.
    """

    def __init__(
        self,
        requests_per_second: float = 200.0,
        credentials: Callable[[], kopf.ConnectionInfo | None] = lambda: log_in(kopf.OperatorSettings()),
        *,
        tries: int = TRIES,
        timeout: float = TIMEOUT_SECONDS,
        count: Count = lambda verb, resource, code: None,
    ) -> None:
        self._credentials = credentials
        info = self._log_in()
        self._server = info.server.rstrip("/")
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=info.as_ssl_context()),
            headers={"User-Agent": names.OPERATOR_FIELD_MANAGER},
            timeout=aiohttp.ClientTimeout(total=timeout),
            proxy=info.proxy_url,
        )
        self._limit = RateLimit(requests_per_second, 2 * requests_per_second)
        self._tries = tries
        self._count = count
        self.may_write: Callable[[], bool] = lambda: True
        self.requests = 0

    async def close(self) -> None:
        await self._client.close()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        return await self._request("get", kind.plural, kind.path(namespace, name))

    async def openapi(self, group: str, version: str) -> Object:
        """The schemas that are served for a group, which anyone who is authenticated may read."""
        return await self._request("get", "openapi", f"/openapi/v3/apis/{group}/{version}")

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Versions that are served, by API group."""
        found = await self._request("get", "apis", "/apis")
        return {each["name"]: tuple(version["version"] for version in each["versions"]) for each in found["groups"]}

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str | None = None
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Events about objects of a kind since a list's version, with bookmarks; until the server ends them.

        Raises:
            ApiError: the server's refusal.
            Unreachable: the server can't be reached, or was lost.
        """
        await self._limit.take()
        self.requests += 1
        params = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS), "labelSelector": labels or ""}
        params |= {"resourceVersion": since, "allowWatchBookmarks": "true"}
        path = kind.path(namespace)
        timeout = aiohttp.ClientTimeout(connect=TIMEOUT_SECONDS, sock_read=SILENCE_SECONDS)
        try:
            async with self._client.get(
                self._server + path, params=params, headers=self._authorization, timeout=timeout
            ) as answer:
                self._count("watch", kind.plural, str(answer.status))
                if answer.status == 401:
                    self._log_in()
                if answer.status >= 400:
                    raise _error(answer.status, await answer.read())
                yield (json.loads(line) async for line in _lines(answer.content))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unreachable(f"WATCH {path}: {type(error).__name__} {error}") from error

    async def metadata(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """The object without its content, which for a Secret is none of our business."""
        return await self._request("get", kind.plural, kind.path(namespace, name), accept=_METADATA)

    async def create(
        self, kind: Kind, made: Object, *, strict: bool = False, dry_run: bool = False, whole: bool = False
    ) -> Object:
        """Make an object; its metadata, or the whole of it.

        Strictly, it is refused where it has fields that the API server doesn't know.
        """
        params = {"fieldManager": names.OPERATOR_FIELD_MANAGER}
        if strict or dry_run:
            params["fieldValidation"] = "Strict"
        if dry_run:
            params["dryRun"] = "All"
        path = kind.path(made["metadata"]["namespace"])
        accept = "application/json" if whole else _METADATA
        return await self._request("create", kind.plural, path, params=params, body=made, accept=accept)

    async def replace(self, kind: Kind, made: Object) -> Object:
        """Write the whole object, if its resource version is still the newest."""
        params = {"fieldManager": names.OPERATOR_FIELD_MANAGER}
        path = kind.path(made["metadata"]["namespace"], made["metadata"]["name"])
        return await self._request("update", kind.plural, path, params=params, body=made)

    async def apply(self, kind: Kind, made: Object, *, dry_run: bool = False) -> None:
        """Server-side apply; fields that others set on the side stay theirs."""
        params = {"fieldManager": names.OPERATOR_FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            params["dryRun"] = "All"
        path = kind.path(made["metadata"]["namespace"], made["metadata"]["name"])
        await self._request(
            *("patch", kind.plural, path), params=params, body=made, accept=_METADATA, content_type=_APPLY
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        uid: str,
        fields: Object,
        *,
        subresource: str | None = None,
        version: str | None = None,
    ) -> Object:
        """Set fields of this very object, or of this very version of it, and leave the rest."""
        params = {"fieldManager": names.OPERATOR_FIELD_MANAGER, "fieldValidation": "Strict"}
        body = {**fields, "metadata": {"uid": uid} | ({"resourceVersion": version} if version else {})}
        path = kind.path(namespace, name, subresource)
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        return await self._request("patch", resource, path, params=params, body=body, content_type=_MERGE)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str, *, after_its_own: bool = False) -> None:
        """Delete this very object, and what it owns after it; or before it, so that it is there until they are gone."""
        policy = "Foreground" if after_its_own else "Background"
        body = {"propagationPolicy": policy, "preconditions": {"uid": uid}}
        await self._request("delete", kind.plural, kind.path(namespace, name), body=body)

    async def list(self, kind: Kind, namespace: str | None, **which: Unpack[Which]) -> AsyncIterator[Object]:
        """Objects, page by page."""
        async for page in self.pages(kind, namespace, **which):
            for item in page.items:
                yield item

    async def pages(self, kind: Kind, namespace: str | None, **which: Unpack[Which]) -> AsyncIterator[Page]:
        """The same with their list's version, from which a watch goes on."""
        left, token = which.get("limit"), ""
        accept = _METADATA_LIST if which.get("metadata_only") else "application/json"
        while True:
            params = {"limit": str(min(PAGE, left or PAGE)), "continue": token}
            params |= {"labelSelector": which.get("labels") or "", "fieldSelector": which.get("fields") or ""}
            used = {key: value for key, value in params.items() if value}
            found = await self._request("list", kind.plural, kind.path(namespace), params=used, accept=accept)
            metadata = found.get("metadata", {})
            page = Page(found.get("items") or [], metadata.get("resourceVersion") or "")
            yield page
            token = metadata.get("continue") or ""
            if left is not None:
                left -= len(page.items)
            if not token or (left is not None and left <= 0):
                return

    async def _request(
        self,
        verb: str,
        resource: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Object:
        headers = {"Accept": accept, "Content-Type": content_type}
        content = None if body is None else json.dumps(body).encode()
        method, pause, trusted = _METHODS[verb], 0.2, False
        attempt = 0
        while True:
            attempt += 1
            await self._limit.take()
            if method != "GET" and not self.may_write():
                raise NotLeading(f"{method} {path} isn't sent: another process may lead")
            self.requests += 1
            try:
                async with self._client.request(
                    method, self._server + path, params=params, data=content, headers=headers | self._authorization
                ) as answer:
                    text = await answer.read()
                self._count(verb, resource, str(answer.status))
                if answer.status < 400:
                    found: Object = json.loads(text)
                    return found
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                if not isinstance(error, ValueError):
                    self._count(verb, resource, "")
                if attempt == self._tries:
                    raise Unreachable(f"{method} {path}: {type(error).__name__} {error}") from error
                wanted = pause
            else:
                if answer.status == 401 and not trusted:
                    trusted = bool(self._log_in())
                    attempt -= 1
                    continue
                refused = _error(answer.status, text)
                if refused.code not in _AGAIN or attempt == self._tries:
                    raise refused
                wanted = max(pause, _retry_after(answer.headers))
            await asyncio.sleep(wanted * random.uniform(1.0, 1.5))
            pause = min(2 * pause, 10.0)

    def _log_in(self) -> kopf.ConnectionInfo:
        info = self._credentials()
        if info is None:
            raise Unreachable("neither a service account nor a kubeconfig (KUBECONFIG) to reach the API server with")
        self._authorization = info.as_http_headers()
        return info


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length, which the reader's own method wouldn't take."""
    left = b""
    async for chunk in content.iter_any():
        *whole, left = (left + chunk).split(b"\n")
        for line in whole:
            yield line


def _error(code: int, text: bytes) -> ApiError:
    try:
        status = json.loads(text)
        message = str(status.get("message", ""))
        # A field that isn't in the schema is the sender's fault, whatever the API server says of itself.
        code = 400 if _UNTYPED in message else code
        return ApiError(code, str(status.get("reason", "")), message)
    except (ValueError, AttributeError):
        return ApiError(code, "", text[:500].decode(errors="replace"))


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(float(headers.get("Retry-After", 0)), 30.0)
    except ValueError:
        return 0.0
