"""What the cluster tests do to a cluster: all of it through kubectl, as a user would."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Object = dict[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).parents[2]
JOB_LABEL = "rltrain.dev/job"
ROLE_LABEL = "rltrain.dev/role"
POLL_SECONDS = 0.5
_KUBECTL = str(ROOT / ".cluster/bin/kubectl")


@dataclass(frozen=True)
class Kube:
    """A namespace of the test cluster."""

    namespace: str

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl in the namespace; its stdout. With `check`, its words are the failure's."""
        done = self.run(*args, stdin=stdin)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)} exited {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl in the namespace, whatever comes of it."""
        return subprocess.run(
            [_KUBECTL, "-n", self.namespace, *args], input=stdin, capture_output=True, text=True, timeout=300
        )

    def apply(self, *objects: Object) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind: str, name: str) -> Object | None:
        """The object, or None if there is none of that name."""
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def select(self, kind: str, **labels: str) -> list[Object]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        items: list[Object] = json.loads(self.kubectl("get", kind, "-o", "json", "-l", selector))["items"]
        return items

    def pods(self, job: str, role: str | None = None) -> list[Object]:
        """Pods of a job that aren't on their way out."""
        labels = {JOB_LABEL: job} | ({ROLE_LABEL: role} if role else {})
        return [pod for pod in self.select("pods", **labels) if "deletionTimestamp" not in pod["metadata"]]

    def delete(self, kind: str, name: str, *flags: str) -> None:
        self.kubectl("delete", kind, name, *flags)

    def job(self, name: str) -> Object:
        """The RLTrainingJob, which must be there."""
        job = self.get("rltj", name)
        assert job is not None, f"no RLTrainingJob {name} in {self.namespace}"
        return job

    def wait(self, what: str, probe: Callable[[], T | None], timeout: float) -> T:
        """Ask until `probe` returns something true; what it returned.

        Raises:
            AssertionError: after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if found := probe():
                return found
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"not within {timeout:.0f} s: {what}")

    def wait_gone(self, kind: str, name: str, timeout: float) -> None:
        """Wait until there is no such object, to the moment."""
        self.kubectl("wait", "--for=delete", f"{kind}/{name}", f"--timeout={timeout:.0f}s")

    def story(self) -> str:
        """Everything that tells why the jobs here are where they are."""
        parts = [self.run("get", "rltj,jobs,pods,pvc,svc", "-o", "wide").stdout]
        parts.append(self.run("get", "events", "--sort-by=.lastTimestamp").stdout[-6000:])
        for name in self._names("rltj"):
            parts.append(f"--- {name}\n{self.run('get', 'rltj', name, '-o', 'jsonpath={.status}').stdout}")
        for name in self._names("pods"):
            done = self.run("logs", name, "--all-containers", "--tail=60")
            parts.append(f"--- {name}\n{done.stdout}{done.stderr}")
        return "\n".join(parts)

    def _names(self, kind: str) -> list[str]:
        return self.run("get", kind, "-o", "jsonpath={.items[*].metadata.name}").stdout.split()

    def told(self, job: str, why: str) -> str:
        """The note of an event of that reason about a job; empty before there is one."""
        fields = f"involvedObject.name={job},reason={why}"
        note = "jsonpath={.items[0].message}"
        return self.kubectl("get", "events", "--field-selector", fields, "-o", note, check=False)

    def wait_finished(self, job: str, timeout: float) -> Object:
        """The job once it is Succeeded or Failed."""

        def finished() -> Object | None:
            found = self.job(job)
            return found if {condition(found, "Succeeded"), condition(found, "Failed")} & {"True"} else None

        return self.wait(f"{job} Succeeded or Failed", finished, timeout)

    def wait_steps(self, job: str, steps: int, timeout: float) -> Object:
        """The job once its progress says at least `steps` env steps."""

        def trained() -> Object | None:
            found = self.job(job)
            return found if progress(found).get("envSteps", 0) >= steps else None

        return self.wait(f"{job} at {steps} env steps", trained, timeout)


def condition(job: Object, kind: str) -> str | None:
    """Status of a condition: True, False or Unknown; None where it isn't set."""
    return _condition(job, kind).get("status")


def reason(job: Object, kind: str) -> str | None:
    return _condition(job, kind).get("reason")


def message(job: Object, kind: str) -> str:
    return str(_condition(job, kind).get("message", ""))


def _condition(job: Object, kind: str) -> Object:
    conditions = job.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == kind), {})


def progress(job: Object) -> Object:
    found: Object = job.get("status", {}).get("progress", {})
    return found
