"""The command line in this process, and a small API server on loopback for it."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes.config import kube_config

from rltrain.cli.main import _run

Object = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def rltrain(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line as its entry point does."""

    def run(*args: str | Path) -> Done:
        code = _run([str(arg) for arg in args])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@dataclass
class ApiServer:
    """Objects by their path, and what is to be refused.

    Attributes:
        port: where it listens, on loopback.
        objects: what GET and DELETE find.
        refusals: status and body for paths that aren't served.
        seen: method, path and body of each request.
    """

    port: int = 0
    objects: dict[str, Object] = field(default_factory=dict)
    refusals: dict[str, tuple[int, Any]] = field(default_factory=dict)
    seen: list[tuple[str, str, Any]] = field(default_factory=list)

    def put(self, path: str, body: Object) -> None:
        name = path.rpartition("/")[2]
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
        metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"} | body.get("metadata", {})
        self.objects[path] = {**body, "metadata": metadata}

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        url = urlsplit(target)
        self.seen.append((method, url.path, body))
        for path, refusal in self.refusals.items():
            if url.path.startswith(path):
                return refusal
        if method == "PATCH":
            status = 200 if url.path in self.objects else 201
            before = self.objects.get(url.path, {})
            self.put(url.path, {key: before[key] for key in ("status",) if key in before} | body)
            return status, self.objects[url.path]
        if url.path in self.objects:
            found = self.objects[url.path]
            if method == "DELETE":
                del self.objects[url.path]
            return 200, found
        if method == "GET" and (items := self._listed(url.path, parse_qs(url.query))) is not None:
            return 200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}
        kind, _, name = url.path.rpartition("/")
        details = {"kind": kind.rpartition("/")[2], "name": name}
        return 404, {"kind": "Status", "reason": "NotFound", "message": f"{name} not found", "details": details}

    def _listed(self, path: str, query: dict[str, list[str]]) -> list[Object] | None:
        if path.rpartition("/")[2] not in ("rltrainingjobs", "pods", "jobs", "persistentvolumeclaims"):
            return None
        wanted = dict(pair.split("=") for text in query.get("labelSelector", []) for pair in text.split(","))
        items = [found for key, found in self.objects.items() if key.rpartition("/")[0] == path]
        for selector in query.get("fieldSelector", []):
            items = [found for found in items if f"metadata.name={found['metadata']['name']}" == selector]
        return [found for found in items if wanted.items() <= found["metadata"].get("labels", {}).items()]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """An API server that the kubeconfig points to."""
    state = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._serve
            raise AttributeError(name)

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = state.answer(self.command, self.path, body)
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    use_kubeconfig(tmp_path, monkeypatch, f"http://127.0.0.1:{state.port}")
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def use_kubeconfig(folder: Path, monkeypatch: pytest.MonkeyPatch, server: str | None) -> Path:
    """Point the client to a server, or to a kubeconfig that isn't there."""
    path = folder / "kubeconfig"
    if server is not None:
        contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("lab", "cloud")]
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": contexts,
        }
        path.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    # The client reads the variable when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


JOBS = "/apis/rltrain.dev/v1alpha1/namespaces/default/rltrainingjobs"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"


def job(**status: Any) -> Object:
    """An RLTrainingJob as an API server has it."""
    spec = {"plan": "DQN", "env": {"id": "CartPole-v1"}, "stop": {"envSteps": 1000}}
    return {"apiVersion": "rltrain.dev/v1alpha1", "kind": "RLTrainingJob", "spec": spec, "status": status}


def condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
