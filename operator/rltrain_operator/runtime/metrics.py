"""What the operator measures of itself, for Prometheus. No label holds what users may choose."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rltrain.api import names
from rltrain.api.status import ConditionType, State
from rltrain_operator.plan import JobView, to_time
from rltrain_operator.render import Object
from rltrain_operator.runtime.cache import Cache

STATES: Final[tuple[str, ...]] = get_args(State)
CONDITIONS: Final[tuple[str, ...]] = get_args(ConditionType)
UNKNOWN: Final = "Unknown"
CAUSES: Final = ("refused", "unreachable", "unexpected")
_VISIT_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_START_SECONDS: Final = (5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_TRAINED: Final = frozenset({"Recovering", "Resuming", "Suspending", "Suspended", "Finished"})
"""Reasons of a job that doesn't train, but may have before."""


class Metrics:
    """Counters and histograms, told what happens as it happens."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._waits = self._histogram(
            "rltrain_queue_wait_seconds", "Time that a job was due before its visit began.", _VISIT_SECONDS
        )
        self._visits = self._histogram(
            "rltrain_reconcile_duration_seconds", "Time that a visit to a job took.", _VISIT_SECONDS
        )
        self._starts = self._histogram(
            "rltrain_job_start_seconds", "Time from a job's creation to its first training.", _START_SECONDS
        )
        self._errors = self._counter(
            "rltrain_reconcile_errors_total", "Visits that failed and are tried again, by cause.", "cause"
        )
        self._requests = self._counter(
            "rltrain_api_requests_total",
            "Requests to the API server, watches aside; the code is empty where no answer came.",
            *("verb", "resource", "code"),
        )
        self._restarts = self._counter("rltrain_job_restarts_total", "Heads lost by jobs that had trained.")
        self._failures = self._counter("rltrain_pod_failures_total", "Pods that failed or were lost, by role.", "role")
        for cause in CAUSES:
            self._errors.labels(cause)
        for role in names.ROLES:
            self._failures.labels(role)

    def waited(self, seconds: float) -> None:
        """A job was due for so long before its visit."""
        self._waits.observe(seconds)

    def visited(self, seconds: float, cause: str | None = None) -> None:
        """A visit is over; it failed where there is a cause, one of CAUSES."""
        self._visits.observe(seconds)
        if cause is not None:
            self._errors.labels(cause).inc()

    def requested(self, verb: str, resource: str, code: str) -> None:
        """A request was answered, or wasn't."""
        self._requests.labels(verb, resource, code).inc()

    def told(self, view: JobView, status: Object, now: datetime) -> None:
        """A job's status has become ``status``; in ``view`` it is as it was before."""
        if begins_to_train(view, status):
            self._starts.observe((now - to_time(view.raw["metadata"]["creationTimestamp"])).total_seconds())
        if _training(status).get("reason") == "Recovering" != view.condition("Training").get("reason"):
            self._restarts.inc()
        for role, count in failures(view, status).items():
            self._failures.labels(role).inc(count)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)


def begins_to_train(view: JobView, status: Object) -> bool:
    """Whether training begins for the first time."""
    before = view.condition("Training")
    is_new = _training(status).get("status") == "True" != before.get("status")
    return is_new and before.get("reason") not in _TRAINED


def failures(view: JobView, status: Object) -> Tally[str]:
    """Pods that have failed since, by role. A Job that was made anew counts from the start."""
    before = {role["name"]: role.get("failed", 0) for role in view.status.get("roles") or []}
    found = Tally[str]()
    for role in status.get("roles") or []:
        name, count, known = role["name"], role["failed"], before.get(role["name"], 0)
        if name in names.ROLES:
            found[name] = count - known if count >= known else count
    return +found


def _training(status: Object) -> Object:
    return next((each for each in status["conditions"] if each["type"] == "Training"), {})


@dataclass(frozen=True, eq=False)
class Levels(Collector):
    """Gauges: what is, read when it is asked for.

    Attributes:
        cache: of the watches.
        depth: jobs that are due and wait.
        leads: whether this process leads; jobs are counted by the leader alone, so that they may be summed up.
        watch_lag: seconds that the watches have been behind the last list.
    """

    cache: Cache
    depth: Callable[[], int]
    leads: Callable[[], bool]
    watch_lag: Callable[[], float]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        leads = self.leads()
        yield GaugeMetricFamily("rltrain_leader", "1 in the process that leads, 0 in the others.", float(leads))
        yield GaugeMetricFamily("rltrain_queue_depth", "Jobs that are due and wait for their visit.", self.depth())
        yield GaugeMetricFamily(
            "rltrain_watch_lag_seconds", "How long the watches have lacked what a list showed.", self.watch_lag()
        )
        events = GaugeMetricFamily(
            "rltrain_watch_last_event_timestamp_seconds",
            "When the watch of a resource brought its last event.",
            labels=["resource"],
        )
        for resource, store in self.cache.stores().items():
            if store.heard_at:
                events.add_metric([resource], store.heard_at)
        yield events
        if leads:
            yield from self._jobs()

    def _jobs(self) -> Iterator[GaugeMetricFamily]:
        states = Tally(dict.fromkeys((*STATES, UNKNOWN), 0))
        pairs = Tally({(kind, status): 0 for kind in CONDITIONS for status in ("True", "False", UNKNOWN)})
        for key in self.cache.training_jobs.keys():  # noqa: SIM118 - a store, not a mapping
            if (view := self.cache.view(key)) is None:
                continue
            state = view.status.get("state")
            states[state if state in STATES else UNKNOWN] += 1
            for kind in CONDITIONS:
                status = view.condition(kind).get("status")
                pairs[kind, status if status in ("True", "False") else UNKNOWN] += 1
        by_state = GaugeMetricFamily("rltrain_jobs", "Jobs, by state.", labels=["state"])
        for state, count in states.items():
            by_state.add_metric([state], count)
        yield by_state
        by_condition = GaugeMetricFamily(
            "rltrain_job_conditions", "Jobs, by condition and its status.", labels=["condition", "status"]
        )
        for pair, count in pairs.items():
            by_condition.add_metric(pair, count)
        yield by_condition
