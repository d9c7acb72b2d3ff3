"""A cluster's API for the subcommands: plain objects over the official client's connection and credentials."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import urllib3
from kubernetes import client, stream
from kubernetes import config as untyped_config
from kubernetes.client.rest import RESTResponse
from kubernetes.config import ConfigException
from kubernetes.stream.ws_client import WSClient
from websocket import WebSocketException
from yaml import YAMLError

from rltrain.api import names
from rltrain.api.errors import ApiUnreachable, RltrainError
from rltrain.api.nearest import did_you_mean
from rltrain.api.seen import Object
from rltrain.cli.refusals import Address, refusal

FIELD_MANAGER: Final = "rltrain-cli"
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 60.0
"""How long a watch outlives an API server that doesn't answer."""
_WATCH_SECONDS: Final = 240
_SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
config: Any = untyped_config
_NETWORK_ERRORS: Final = (urllib3.exceptions.HTTPError, OSError)


@dataclass(frozen=True)
class Cluster:
    """One cluster, one namespace.

    Attributes:
        api: the client that holds the connection.
        address: server and context, for messages.
        namespace: the one that commands work in.
    """

    api: client.ApiClient
    address: Address
    namespace: str

    def path(self, kind: str, name: str | None = None, *, all_namespaces: bool = False, sub: str = "") -> str:
        """Path of a kind ("pods", "batch/v1/jobs", "rltrainingjobs") or one of its objects."""
        if kind == names.PLURAL:
            root, plural = f"/apis/{names.API_VERSION}", kind
        else:
            group, slash, plural = kind.rpartition("/")
            root = f"/apis/{group}" if slash else "/api/v1"
        inside = "" if all_namespaces else f"/namespaces/{quote(self.namespace, safe='')}"
        tail = f"/{quote(name, safe='')}{f'/{sub}' if sub else ''}" if name is not None else ""
        return f"{root}{inside}/{plural}{tail}"

    def get(self, kind: str, name: str) -> Object:
        """One object. Raises NoSuchObject."""
        return self._json("GET", self.path(kind, name))

    def select(self, kind: str, selector: Mapping[str, str] | None = None, *, all_namespaces: bool = False) -> Object:
        """The objects with all of these labels, as a list object."""
        labels = ",".join(f"{key}={value}" for key, value in (selector or {}).items())
        query = {"labelSelector": labels} if labels else {}
        return self._json("GET", self.path(kind, all_namespaces=all_namespaces), query)

    def apply(self, kind: str, body: Object) -> Object:
        """Server-side apply; unknown fields are errors. The object as it is then."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        path = self.path(kind, body["metadata"]["name"])
        return self._json("PATCH", path, query, body=body, content_type="application/apply-patch+yaml")

    def create(self, kind: str, body: Object) -> Object:
        return self._json("POST", self.path(kind), {"fieldManager": FIELD_MANAGER}, body=body)

    def delete(self, kind: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None) -> None:
        """Delete an object, that of the given UID only; its children go in the background."""
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        self._json("DELETE", self.path(kind, name), body=body)

    def follow(self, kind: str, name: str, timeout: float | None = None) -> Iterator[Object | None]:
        """An object each time that it changes, starting with what it is now; None while there is none.

        Args:
            kind: as in `path`.
            name: the object's.
            timeout: seconds after which the iterator ends, if it is to end.
        """
        selector = {"fieldSelector": f"metadata.name={name}"}
        deadline = time.monotonic() + timeout if timeout is not None else None
        lost_since: float | None = None
        while deadline is None or time.monotonic() < deadline:
            try:
                listing = self._json("GET", self.path(kind), selector)
                lost_since = None
                yield next(iter(listing["items"]), None)
                seconds = _WATCH_SECONDS if deadline is None else max(1, int(deadline - time.monotonic()))
                version = listing["metadata"]["resourceVersion"]
                yield from self._watch(kind, selector, version, seconds)
            except ApiUnreachable:
                now = time.monotonic()
                lost_since = lost_since or now
                if now - lost_since > PATIENCE_SECONDS:
                    raise
                time.sleep(2.0)

    def _watch(self, kind: str, selector: Mapping[str, str], version: str, seconds: int) -> Iterator[Object | None]:
        query = {**selector, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        response = self._open("GET", self.path(kind), query, read_seconds=seconds + READ_SECONDS)
        for line in self._lines(response):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            if event["type"] != "BOOKMARK":
                yield None if event["type"] == "DELETED" else event["object"]

    def log_lines(
        self, pod: str, *, follow: bool, tail: int | None = None, container: str = "rltrain"
    ) -> Iterator[str]:
        """Lines of a container's log, as they come if `follow`."""
        query = {"container": container, "follow": str(follow).lower()}
        if tail is not None:
            query["tailLines"] = str(tail)
        # A quiet container is not a lost connection: followers wait for as long as it runs.
        response = self._open("GET", self.path("pods", pod, sub="log"), query, read_seconds=None if follow else 60.0)
        for line in self._lines(response):
            yield line.decode(errors="replace")

    def execute(self, pod: str, container: str, command: list[str]) -> WSClient:
        """Run a command in a container; its channels as bytes."""
        core = client.CoreV1Api(self.api)
        try:
            opened: WSClient = stream.stream(
                core.connect_get_namespaced_pod_exec,
                *(pod, self.namespace),
                container=container,
                command=command,
                stdin=False,
                stdout=True,
                stderr=True,
                tty=False,
                binary=True,
                _preload_content=False,
            )
        except client.ApiException as error:
            raise RltrainError(f"can't run a command in pod {pod}: {error.reason}") from error
        except (*_NETWORK_ERRORS, WebSocketException) as error:
            raise self._unreachable(error) from error
        return opened

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        response = self._open(method, path, query or {}, body=body, content_type=content_type)
        try:
            found = json.loads(response.response.data)
        except _NETWORK_ERRORS as error:
            raise self._unreachable(error) from error
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ApiUnreachable(f"what answers there isn't {self.address}: give another --context")
        return found

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Object | None = None,
        content_type: str = "application/json",
        read_seconds: float | None = READ_SECONDS,
    ) -> RESTResponse:
        """A response that is being read; refusals are raised."""
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            serialized = self.api.param_serialize(
                *(method, path),
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            verb, url, sent, content, _ = serialized
            timeout = (CONNECT_SECONDS, read_seconds)
            response = self.api.call_api(verb, url, sent, content, _request_timeout=timeout)
            if response.status >= 400:
                raise refusal(self.address, response.status, response.response.data)
        except (*_NETWORK_ERRORS, client.ApiException) as error:
            raise self._unreachable(error) from error
        return response

    def _lines(self, response: RESTResponse) -> Iterator[bytes]:
        rest = b""
        try:
            for chunk in response.response.stream(1 << 16, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
        except _NETWORK_ERRORS as error:
            raise self._unreachable(error) from error
        finally:
            response.response.release_conn()
        if rest:
            yield rest

    def _unreachable(self, error: Exception) -> ApiUnreachable:
        return ApiUnreachable(f"{self.address} doesn't answer: {_cause(error)}")


def connect(context: str | None = None, namespace: str | None = None) -> Cluster:
    """The cluster of a kubeconfig's context, or the one that this pod runs in.

    Args:
        context: the kubeconfig's current one when not given.
        namespace: the context's when not given.

    Raises:
        ApiUnreachable: there is no usable configuration.
    """
    settings = client.Configuration()
    try:
        contexts, active = config.list_kube_config_contexts()
        if context is not None:
            known = {found["name"]: found for found in contexts}
            if context not in known:
                raise ApiUnreachable(
                    f"the kubeconfig has no context {context}{did_you_mean(context, known)}: it has {', '.join(known)}"
                )
            active = known[context]
        config.load_kube_config(context=active["name"], client_configuration=settings)
        usual = active["context"].get("namespace")
        name = str(active["name"])
    except (ConfigException, YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        if context is not None or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise ApiUnreachable(_no_configuration(error)) from None
        config.load_incluster_config(client_configuration=settings)
        usual, name = _own_namespace(), "in-cluster"
    # Each failure is told once, by us.
    settings.retries = False
    return Cluster(client.ApiClient(settings), Address(str(settings.host), name), namespace or usual or "default")


def _no_configuration(error: Exception) -> str:
    place: str = config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    if not any(Path(path).expanduser().exists() for path in place.split(os.pathsep) if path):
        return f"no cluster is configured: there is no kubeconfig {place}; set KUBECONFIG to one"
    words = " ".join(_cause(error).removeprefix("Invalid kube-config file. ").split())
    return f"the kubeconfig {place} can't be used: {words}; mend it, or set KUBECONFIG to another"


def _own_namespace() -> str | None:
    try:
        with open(_SERVICE_ACCOUNT) as file:  # noqa: PTH123 - a path of pods, not of ours
            return file.read().strip()
    except OSError:
        return None


def _cause(error: BaseException) -> str:
    """The innermost words of a chain of network errors."""
    text = str(getattr(error, "reason", None) or error) or type(error).__name__
    if "Connection(" in text or "Connection object" in text:
        text = text.rpartition(": ")[2]
    return re.sub(r"\[Errno -?\d+\] ", "", text)
