"""A small API server over HTTP: objects with versions, lists, watches, and whatever misbehaviour a test wants."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import kopf
from aiohttp import web

Object = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SERVED = {
    "v1": ("namespaces", "Namespace"),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions", "CustomResourceDefinition"),
    "batch/v1": ("jobs", "Job"),
    "rltrain.dev/v1alpha1": ("rltrainingjobs", "RLTrainingJob"),
}
"""What discovery tells of, by version: kopf wants the first two to be there."""


def refusal(code: int, message: str = "", **headers: str) -> web.Response:
    return web.json_response({"reason": "Why", "message": message}, status=code, headers=headers)


class Server:
    """The state of the server.

    Attributes:
        objects: by resource, then by namespace and name.
        requests: method and path of each request so far, and what came of the writes.
        first: asked before anything else is done with a request; an answer of it is sent instead.
        mute: resources whose watches send nothing, not even an end.
        served: what discovery tells of, by version.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[tuple[str, str], Object]] = {}
        self.requests: list[tuple[str, str]] = []
        self.first: Callable[[web.Request], Awaitable[web.StreamResponse | None]] | None = None
        self.mute: set[str] = set()
        self.served = dict(SERVED)
        self.url = ""
        self._events: list[tuple[str, int, Object]] = []
        self._news = asyncio.Condition()
        self._version = 0
        self._tokens = itertools.count(1)

    @property
    def config(self) -> Object:
        """A kubeconfig for it."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }

    def credentials(self) -> kopf.ConnectionInfo:
        """As a pod has them, with another token each time."""
        return kopf.ConnectionInfo(server=self.url, token=f"token {next(self._tokens)}")

    async def put(self, resource: str, made: Object, kind: str = "MODIFIED") -> Object:
        """Make or change an object; kind is the event's."""
        key = made["metadata"].get("namespace", "default"), made["metadata"]["name"]
        known = self.objects.setdefault(resource, {})
        self._version += 1
        uid = known[key]["metadata"]["uid"] if key in known else f"uid-{self._version}"
        metadata = {"uid": uid, "creationTimestamp": "2026-11-30T12:00:00Z", "generation": 1, **made["metadata"]}
        known[key] = {**made, "metadata": {**metadata, "namespace": key[0], "resourceVersion": str(self._version)}}
        await self._tell(resource, "ADDED" if key not in known else kind, known[key])
        return known[key]

    async def remove(self, resource: str, namespace: str, name: str) -> None:
        gone = self.objects[resource].pop((namespace, name))
        self._version += 1
        await self._tell(resource, "DELETED", gone)

    async def _tell(self, resource: str, kind: str, about: Object) -> None:
        async with self._news:
            self._events.append((resource, self._version, {"type": kind, "object": about}))
            self._news.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        if self.first is not None and (answer := await self.first(request)) is not None:
            return answer
        parts = request.path.strip("/").split("/")
        if parts == ["api"]:
            return web.json_response({"versions": ["v1"]})
        if parts == ["apis"]:
            groups = [name.split("/") for name in self.served if "/" in name]
            return web.json_response(
                {
                    "groups": [
                        {"name": group, "versions": [{"version": v}], "preferredVersion": {"version": v}}
                        for group, v in groups
                    ]
                }
            )
        if parts[0] == "openapi":
            return refusal(404)
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if not rest:
            return self._discovery("/".join(parts[1:]))
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        if len(rest) == 1 and request.method == "GET":
            resource = rest[0]
            return await self._watch(request, resource) if "watch" in request.query else self._list(resource)
        return await self._one(request, rest[0], namespace, rest[1] if len(rest) > 1 else "", rest[2:])

    def _discovery(self, version: str) -> web.Response:
        plural, kind = self.served[version]
        found = {
            "name": plural,
            "kind": kind,
            "singularName": "",
            "namespaced": True,
            "verbs": ["get", "list", "watch", "patch", "create", "delete"],
        }
        return web.json_response({"groupVersion": version, "resources": [found]})

    def _list(self, resource: str) -> web.Response:
        items = list(self.objects.get(resource, {}).values())
        return web.json_response({"items": items, "metadata": {"resourceVersion": str(self._version)}})

    async def _watch(self, request: web.Request, resource: str) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        since = int(request.query.get("resourceVersion", 0))
        if resource in self.mute:
            await asyncio.Event().wait()
        while True:
            async with self._news:
                news = [event for of, version, event in self._events if of == resource and version > since]
                if not news:
                    await self._news.wait()
                    continue
                since = self._version
            for event in news:
                await stream.write(json.dumps(event).encode() + b"\n")

    async def _one(
        self, request: web.Request, resource: str, namespace: str, name: str, sub: list[str]
    ) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        name = name or body["metadata"].get("name") or f"{body['metadata'].get('generateName')}{self._version}"
        known = self.objects.get(resource, {}).get((namespace, name))
        match request.method:
            case "POST" if known is not None:
                return refusal(409, "already exists")
            case "POST":
                body["metadata"]["name"] = name
                return web.json_response(await self.put(resource, body))
            case "PATCH":
                kept = known or {}
                changed = {**kept, **body, "metadata": {**kept.get("metadata", {}), **body["metadata"]}}
                if sub:
                    changed["spec"] = kept.get("spec", {})
                return web.json_response(await self.put(resource, changed))
        if known is None:
            return refusal(404, "not found")
        match request.method:
            case "PUT":
                if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
                    return refusal(409, "the object has been modified")
                return web.json_response(await self.put(resource, body))
            case "DELETE":
                await self.remove(resource, namespace, name)
        return web.json_response(known)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server on this machine; its URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def api_server() -> AsyncIterator[Server]:
    """A running one."""
    made = Server()
    async with serving(made.handle) as made.url:
        yield made
