"""One contender's turn on a fresh control plane: make all jobs, rest, report progress, restart, lose a head."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from bench.operator.api import Api
from bench.operator.audit import writes
from bench.operator.contenders import CLAIM, NAMESPACE, Contender, path
from bench.operator.drivers import Drivers
from bench.operator.observe import Observer
from bench.operator.process import rest, used
from bench.operator.running import Broken, Operator
from testbed.fakenodes import FAIL_LABEL, PODS_EACH, FakeNodes
from testbed.onenode import FILES, apply, kubectl

US: Final = "bench"
SUBMITTERS: Final = 8
PLANE: Final = ("kube-apiserver", "kube-controller-manager", "etcd", "kube-scheduler", "kwok")


@dataclass(frozen=True)
class Size:
    """How much work.

    Attributes:
        jobs: how many.
        workers: pods of each beside its head.
    """

    jobs: int
    workers: int

    @property
    def pods(self) -> int:
        return self.jobs * (1 + self.workers)

    def __str__(self) -> str:
        return f"{self.jobs:,} x 1+{self.workers}"


@dataclass(frozen=True)
class Turn:
    """What one turn takes.

    Attributes:
        size: the work.
        steady_seconds: how long it is watched at rest, and again with progress beside it.
        progress_seconds: between two reports of one job's progress.
        limit_seconds: for making the pods; what isn't done by then isn't done.
        logs: folder for the operator's output.
    """

    size: Size
    steady_seconds: float
    progress_seconds: float
    limit_seconds: float
    logs: Path

    def run(self, contender: Contender) -> dict[str, float]:
        """Figures by name.

        Raises:
            Broken: the work wasn't done.
        """
        with _cluster(contender, self.size) as (plane, api):
            operator = Operator(contender, self.logs / f"{contender.name}-{self.size.jobs}x{self.size.workers}.log")
            try:
                return _Measuring(self, contender, plane, api, operator).all()
            finally:
                operator.stop()


@contextmanager
def _cluster(contender: Contender, size: Size) -> Iterator[tuple[dict[str, int], Api]]:
    """A control plane with room for the work; processes of its programs, and a way to ask it."""
    nodes = FakeNodes(2 + ceil(size.pods / PODS_EACH), (US, contender.name))
    api = None
    try:
        programs = nodes.up().programs()
        api = Api(FILES / "pki", US)
        kubectl("apply", "--server-side", "--filename=-", input=contender.definitions())
        kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=60s")
        apply(*_surroundings())
        # It works out the schemas of new kinds for a while after they were made.
        rest(programs["kube-apiserver"])
        yield {name: programs[name] for name in PLANE}, api
    finally:
        if api is not None:
            api.close()
        nodes.down()


def _surroundings() -> tuple[dict[str, object], ...]:
    """The namespace, and a volume that all heads share."""
    room = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}, "claimRef": {"name": CLAIM}}
    volume["claimRef"]["namespace"] = NAMESPACE
    claim = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": CLAIM}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLAIM}, "spec": room | volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": NAMESPACE},
            "spec": room | claim,
        },
    )


class _Measuring:
    def __init__(self, turn: Turn, contender: Contender, plane: dict[str, int], api: Api, operator: Operator) -> None:
        self._turn = turn
        self._contender = contender
        self._plane = plane
        self._api = api
        self._operator = operator
        self._names = [f"job-{index:04}" for index in range(turn.size.jobs)]
        self._observer = Observer(api, contender)

    def all(self) -> dict[str, float]:
        figures = {"start_s": self._operator.start()}
        self._operator.settle(30, Counter())
        figures["idle_mb"] = self._operator.used.resident
        figures |= self._make()
        figures |= self._rest("steady", self._turn.steady_seconds)
        if self._contender.drivers:
            with Drivers(self._api, self._contender, self._names, self._turn.progress_seconds) as drivers:
                drivers.first_words()
                self._operator.settle(120, Counter())
                drivers.go_on()
                figures |= self._rest("progress", self._turn.steady_seconds)
                figures["progress_reports"] = drivers.reports
        figures |= self._restart()
        figures |= self._lose_a_head()
        return figures

    def _make(self) -> dict[str, float]:
        """All jobs at once, until the operator rests again."""
        size, seen = self._turn.size, self._observer
        before, began, asked = self._cpu(), time.monotonic(), Counter[str]()
        self._operator.audit.news()
        with ThreadPoolExecutor(SUBMITTERS) as pool:
            for name in self._names:
                pool.submit(self._submit, name)
        submitted = time.monotonic()

        def tell() -> None:
            self._say(
                f"{time.monotonic() - began:.0f} s: of {size.pods:,} pods {len(seen.made.now):,} made, "
                f"{len(seen.running.now):,} running; of {size.jobs:,} jobs {len(seen.well.now):,} well"
            )

        def done() -> bool:
            pods = len(seen.made.now) >= size.pods and len(seen.running.now) >= size.pods
            return pods and len(seen.well.now) >= size.jobs

        if not seen.wait(done, self._turn.limit_seconds, tell):
            tell()
            raise Broken(f"{self._contender.name} wasn't done within {self._turn.limit_seconds:.0f} s")
        tell()
        settled = self._operator.settle(120, asked)
        cpu = {name: used_ - before[name] for name, used_ in self._cpu().items()}
        made, running, well = (max(each.first.values()) - began for each in (seen.made, seen.running, seen.well))
        now = self._operator.used
        self._say("requests: " + ", ".join(f"{count} {said}" for said, count in sorted(asked.items())))
        return {
            "submitted_s": submitted - began,
            "made_s": made,
            "running_s": running,
            "well_s": well,
            "settled_s": settled - began,
            "pods_per_s": size.pods / made,
            "running_per_s": size.pods / running,
            "operator_cpu_s": cpu["operator"],
            "together_cpu_s": cpu["operator"] + cpu["kube-controller-manager"] + cpu["kube-apiserver"],
            **{f"{name}_cpu_s": cpu[name] for name in PLANE},
            "resident_mb": now.resident,
            "peak_mb": now.peak,
            "requests_a_job": asked.total() / size.jobs,
            "writes_a_job": writes(asked) / size.jobs,
        }

    def _rest(self, what: str, seconds: float) -> dict[str, float]:
        """Nothing is to be done: requests and processor time of a while."""
        self._operator.audit.news()
        before, began = self._cpu(), time.monotonic()
        time.sleep(seconds)
        asked, took = self._operator.audit.news(), time.monotonic() - began
        cpu = {name: (now - before[name]) / took for name, now in self._cpu().items()}
        self._say(f"{what}: {dict(asked)} in {took:.0f} s, {cpu['operator']:.1%} of a core")
        watches = sum(count for said, count in asked.items() if said.startswith("watch"))
        return {
            f"{what}_requests": asked.total() - watches,
            f"{what}_watches": watches,
            f"{what}_writes": writes(asked),
            f"{what}_cpu": cpu["operator"],
            f"{what}_api_server_cpu": cpu["kube-apiserver"],
            f"{what}_mb": self._operator.used.resident,
        }

    def _restart(self) -> dict[str, float]:
        """With all jobs alive: until it is ready, and until it rests."""
        began = time.monotonic()
        self._operator.stop()
        stopped = time.monotonic()
        self._operator.audit.news()
        ready = self._operator.start()
        asked: Counter[str] = Counter()
        rest = self._operator.settle(300, asked)
        self._say(f"restart: ready after {ready:.1f} s, {asked}")
        return {
            "stop_s": stopped - began,
            "restart_ready_s": ready,
            "restart_idle_s": rest - stopped,
            "restart_cpu_s": self._operator.used.cpu,
            "restart_writes": writes(asked),
            "restart_mb": self._operator.used.resident,
        }

    def _lose_a_head(self) -> dict[str, float]:
        """The head of one job among them fails: until the job says so, and until it is well again."""
        job, seen = self._names[len(self._names) // 2], self._observer
        found = self._api.request("GET", f"{_pods()}?labelSelector={self._contender.head(job)}")
        (head,) = (pod["metadata"]["name"] for pod in found["items"])
        began = time.monotonic()
        self._api.merge(f"{_pods()}/{head}", {"metadata": {"labels": {FAIL_LABEL: "now"}}})
        if not seen.wait(lambda: job not in seen.well.now, 120):
            raise Broken(f"{self._contender.name} doesn't report the loss of {head}")
        noticed = time.monotonic() - began
        if not seen.wait(lambda: job in seen.well.now, 120):
            raise Broken(f"{self._contender.name} doesn't report that {job} is well again")
        healed = time.monotonic() - began
        self._say(f"a head lost: reported after {noticed:.2f} s, well again after {healed:.1f} s")
        return {"noticed_s": noticed, "healed_s": healed}

    def _submit(self, name: str) -> None:
        try:
            self._api.request("POST", path(self._contender), self._contender.job(name, self._turn.size.workers))
        except Exception as error:
            self._say(f"{name} isn't taken: {error}")

    def _cpu(self) -> dict[str, float]:
        return {"operator": self._operator.used.cpu} | {name: used(pid).cpu for name, pid in self._plane.items()}

    def _say(self, words: str) -> None:
        print(f"{self._turn.size} {self._contender.name}: {words}", file=sys.stderr, flush=True)


def _pods() -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods"
