"""What the driver tells the Kubernetes API, seen from an API server's side."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from kubernetes import client

from rltrain.api.status import CheckpointStatus, Progress
from rltrain.runtime.kubernetes_progress import KubernetesProgress
from rltrain.runtime.result import RunResult

PATH = "/apis/rltrain.dev/v1alpha1/namespaces/ns/rltrainingjobs/job/status"


class Server(ThreadingHTTPServer):
    """Keeps what it was sent; answers with an error while `broken`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, list[str]], str | None, dict[str, Any]]] = []
        self.broken = False
        self.changed = threading.Condition()

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, 30)


class Handler(BaseHTTPRequestHandler):
    def do_PATCH(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        url = urlparse(self.path)
        with server.changed:
            server.requests.append((url.path, parse_qs(url.query), self.headers["Content-Type"], body))
            self.send_response(500 if server.broken else 200)
            server.changed.notify_all()
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def observer(server: Server, every_s: float = 3600) -> KubernetesProgress:
    configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_address[1]}")
    configuration.retries = False
    return KubernetesProgress(client.CustomObjectsApi(client.ApiClient(configuration)), "ns", "job", every_s)


def progress(**changes: Any) -> Progress:
    fields = {"phase": "Training", "attempt": 1, "env_steps": 10, "updated_at": "2026-01-01T00:00:00Z", **changes}
    return Progress.model_validate(fields)


OUTCOME = RunResult("Succeeded", "env_steps", 500, 400, 3.5, 9.0, "/data/uid/checkpoints/x")


def test_changes_of_phase_and_workers_are_told_at_once_under_a_field_manager_of_its_own(server: Server) -> None:
    told = observer(server)
    told.progress(progress(phase="Starting", workers_wanted=2))
    server.wait_for(1)
    told.progress(progress(phase="Starting", workers_wanted=2, workers_healthy=1))
    server.wait_for(2)
    told.saved(CheckpointStatus(path="/data/uid/checkpoints/x", env_steps=10, saved_at="2026-01-01T00:00:00Z"))
    server.wait_for(3)
    told.progress(progress(phase="Starting", workers_wanted=1, workers_healthy=1))
    server.wait_for(4)
    told.progress(progress(phase="Starting", workers_wanted=1, workers_healthy=1, rollouts_proposed=2))
    server.wait_for(5)
    told.progress(progress(phase="Starting", workers_wanted=1, workers_healthy=1, rollouts_proposed=2, env_steps=99))
    told.finished(OUTCOME)
    path, query, kind, body = server.requests[-1]
    assert len(server.requests) == 6, "steps alone are no news"
    assert path == PATH
    assert query["fieldManager"] == ["rltrain-driver"]
    assert kind == "application/merge-patch+json"
    assert body["status"]["checkpoint"]["envSteps"] == 10
    last = body["status"]["progress"]
    assert (last["phase"], last["stopReason"], last["envSteps"]) == ("Finished", "env_steps", 500)
    assert body["status"].keys() == {"progress", "checkpoint"}, "the operator's fields are left alone"


def test_a_new_driver_takes_back_its_predecessors_progress_but_not_what_it_said_of_the_checkpoint(
    server: Server,
) -> None:
    told = observer(server)
    told.progress(progress(phase="Starting", attempt=2))
    server.wait_for(1)
    status = server.requests[0][3]["status"]
    assert status["progress"]["episodeReturnMean"] is None, "null in a merge patch takes the field away"
    assert "checkpoint" not in status
    told.finished(OUTCOME)


def test_an_api_that_is_away_is_told_once_and_training_never_waits(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.broken = True
    told = observer(server)
    for phase in ("Starting", "Training", "Starting", "Training"):
        told.progress(progress(phase=phase))
        server.wait_for(1)
    server.broken = False
    told.finished(OUTCOME)
    assert server.requests[-1][3]["status"]["progress"]["phase"] == "Finished"
    assert caplog.text.count("progress can't be reported") == 1


def test_an_interrupted_run_is_not_finished(server: Server) -> None:
    told = observer(server)
    told.progress(progress())
    server.wait_for(1)
    told.finished(RunResult("Interrupted", "terminated", 500, 400, 3.5, 9.0, None))
    assert all(body["status"]["progress"]["phase"] == "Training" for *_, body in server.requests)
