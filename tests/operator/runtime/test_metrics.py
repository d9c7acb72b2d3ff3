"""What is measured means what its name says, and no label grows with the jobs."""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest

from operator_kit.manifests import manifest
from operator_kit.seen import START, World, child, ready_jobs
from rltrain.api import names
from rltrain_operator.plan import JobView
from rltrain_operator.runtime.cache import Cache
from rltrain_operator.runtime.health import Health
from rltrain_operator.runtime.metrics import CONDITIONS, STATES, Levels, Metrics

ROOT = Path(__file__).parents[3]
Object = dict[str, Any]


def levels(cache: Cache, leads: bool = True) -> Levels:
    return Levels(cache, depth=lambda: 3, leads=lambda: leads, watch_lag=lambda: 2.5)


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def view(status: Object | None = None, name: str = "cartpole") -> JobView:
    made = manifest(name=name)
    made["metadata"]["creationTimestamp"] = "2026-11-30T12:00:00Z"
    return JobView({**made, "status": status or {}})


def training(status: str, reason: str, *, failed: int = 0, role: str = "head") -> Object:
    conditions = [{"type": "Training", "status": status, "reason": reason}]
    return {"conditions": conditions, "roles": [{"name": role, "desired": 1, "ready": 1, "failed": failed}]}


STARTING, RUNS = training("False", "Starting"), training("True", "Training")
RECOVERS = training("False", "Recovering", failed=1)


def told(*statuses: Object, after: float = 0.0) -> Metrics:
    """Metrics after a job has had these statuses, one after the other."""
    metrics, before = Metrics(), Object()
    for status in statuses:
        metrics.told(view(before), status, START + timedelta(seconds=after))
        before = status
    return metrics


def test_time_to_training_is_from_creation_and_counted_once_for_each_job() -> None:
    metrics = told(STARTING, RUNS, RUNS, RECOVERS, RUNS, after=42)

    assert sample(metrics, "rltrain_job_start_seconds_count") == 1
    assert sample(metrics, "rltrain_job_start_seconds_sum") == 42


@pytest.mark.parametrize("reason", ["Suspended", "Suspending", "Resuming", "Recovering"])
def test_training_that_goes_on_is_no_start(reason: str) -> None:
    assert sample(told(training("False", reason), RUNS), "rltrain_job_start_seconds_count") == 0


def test_restart_is_told_once_when_a_trained_jobs_head_is_lost() -> None:
    assert sample(told(STARTING, RUNS, RECOVERS, RECOVERS, RUNS), "rltrain_job_restarts_total") == 1
    assert sample(told(STARTING, training("False", "Starting", failed=2)), "rltrain_job_restarts_total") == 0


def test_failed_pods_are_counted_by_role_and_a_job_made_anew_begins_at_none() -> None:
    counts = [0, 1, 1, 4, 0, 2]
    metrics = told(*(training("True", "Training", failed=count, role="workers") for count in counts))

    assert sample(metrics, "rltrain_pod_failures_total", role="workers") == 1 + 3 + 2
    assert sample(metrics, "rltrain_pod_failures_total", role="head") == 0


def test_what_the_planner_writes_is_what_is_read_here() -> None:
    """A whole life: made, trains, loses its head, trains again."""
    world, metrics = World(), Metrics()

    def visit(*jobs: Any, **report: Any) -> None:
        world.report(**report)
        before = JobView(
            {**world.raw, "metadata": {**world.raw["metadata"], "creationTimestamp": "2026-11-30T12:00:00Z"}}
        )
        plan = world.visit(*jobs, after=10)
        if plan.status is not None:
            metrics.told(before, plan.status, world.seen.now)

    visit()
    world.all_applied()
    progress = {"phase": "Training", "attempt": 1, "updatedAt": "2026-11-30T12:00:00Z"}
    visit(*ready_jobs(), progress=progress)
    visit(child("head", active=1, ready=0, failed=1), child("rollouts", active=1, ready=1))
    visit(child("head", active=1, ready=1, failed=1), child("rollouts", active=1, ready=1))

    assert sample(metrics, "rltrain_job_start_seconds_sum") == 20
    assert sample(metrics, "rltrain_job_start_seconds_count") == 1
    assert sample(metrics, "rltrain_job_restarts_total") == 1
    assert sample(metrics, "rltrain_pod_failures_total", role="head") == 1


def test_jobs_are_counted_by_state_and_condition_and_by_the_leader_alone() -> None:
    cache, metrics = Cache(), Metrics()
    for name, status in (("a", {"state": "Training", **RUNS}), ("b", {"state": "Training", **RUNS}), ("c", {})):
        cache.training_jobs.see(view(status, name).raw)
    metrics.registry.register(levels(cache))

    assert sample(metrics, "rltrain_jobs", state="Training") == 2
    assert sample(metrics, "rltrain_jobs", state="Unknown") == 1
    assert sample(metrics, "rltrain_job_conditions", condition="Training", status="True") == 2
    assert sample(metrics, "rltrain_job_conditions", condition="Failed", status="Unknown") == 3
    assert sample(metrics, "rltrain_leader") == 1

    follower = Metrics()
    follower.registry.register(levels(cache, leads=False))
    assert follower.registry.get_sample_value("rltrain_jobs", {"state": "Training"}) is None
    assert follower.registry.get_sample_value("rltrain_leader") == 0


def test_labels_hold_nothing_that_a_user_may_choose() -> None:
    cache, metrics = Cache(), Metrics()
    metrics.registry.register(levels(cache))

    def series() -> int:
        return sum(len(family.samples) for family in metrics.registry.collect())

    few = series()
    for number in range(50):
        odd = {
            "state": f"s{number}",
            "conditions": [{"type": f"t{number}", "status": "True"}, {"type": "Training", "status": f"u{number}"}],
            "roles": [{"name": f"r{number}", "desired": 1, "ready": 0, "failed": 5}],
        }
        cache.training_jobs.see(view(odd, f"job-{number}").raw)
        metrics.told(view(name=f"job-{number}"), odd, START)
    assert series() == few
    assert sample(metrics, "rltrain_jobs", state="Unknown") == 50


def exported() -> set[str]:
    """Names of all series that a process has."""
    metrics = Metrics()
    metrics.requested("get", "jobs", "200")
    cache = Cache()
    cache.jobs.heard_at = 1.0
    metrics.registry.register(levels(cache))
    found = {each.name for family in metrics.registry.collect() for each in family.samples}
    return {name for name in found if not name.endswith("_created")}


def test_dashboard_asks_only_for_what_is_exported_and_for_all_of_it() -> None:
    dashboard = json.loads((ROOT / "charts/rltrain/files/dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    asked = {name for query in queries for name in re.findall(r"\b(?:rltrain|process)_\w+", query)}
    assert asked <= exported()
    own = {name for name in exported() if name.startswith("rltrain_")}
    assert {_family(name) for name in own} == {_family(name) for name in asked if name.startswith("rltrain_")}
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(identifiers) == len(set(identifiers))


def test_manual_tells_of_every_metric_and_of_no_other() -> None:
    manual = (ROOT / "docs/operations.md").read_text()

    rows = re.findall(r"^\| `(rltrain_\w+)", manual, re.MULTILINE)
    assert sorted(rows) == sorted({_family(name) for name in exported() if name.startswith("rltrain_")})


def _family(name: str) -> str:
    return re.sub(r"_(bucket|count|sum)$", "", name)


def test_metrics_are_served_beside_the_probes() -> None:
    async def body() -> None:
        metrics = Metrics()
        metrics.requested("list", "jobs", "503")
        metrics.waited(0.2)
        metrics.visited(0.2, "refused")
        runner = await Health(lambda: 0.0, lambda: False).serve("127.0.0.1", 0, metrics.registry)
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession() as client, client.get(f"http://{host}:{port}/metrics") as answer:
            text = await answer.text()
        await runner.cleanup()
        assert answer.content_type == "text/plain"
        assert 'rltrain_api_requests_total{code="503",resource="jobs",verb="list"} 1.0' in text
        assert 'rltrain_reconcile_errors_total{cause="refused"} 1.0' in text
        assert 'rltrain_queue_wait_seconds_bucket{le="0.25"} 1.0' in text
        assert 'rltrain_queue_wait_seconds_bucket{le="0.1"} 0.0' in text

    asyncio.run(body())


def test_names_follow_the_conventions() -> None:
    text = generate_latest(Metrics().registry).decode()

    for name, kind in re.findall(r"^# TYPE (rltrain_\w+) (\w+)$", text, re.MULTILINE):
        if name.endswith("_created"):
            continue
        assert (kind == "counter") == name.endswith("_total"), name
        if kind == "histogram":
            assert name.endswith("_seconds"), name
    assert set(CONDITIONS) == {"Accepted", "ClusterReady", "Training", "Succeeded", "Failed"}
    assert "Recovering" in STATES
    assert names.HEAD == "head"


def test_last_event_of_a_watch_is_told_once_there_was_one() -> None:
    cache, metrics = Cache(), Metrics()
    metrics.registry.register(levels(cache))
    name = "rltrain_watch_last_event_timestamp_seconds"

    assert metrics.registry.get_sample_value(name, {"resource": "jobs"}) is None
    cache.jobs.take("ADDED", {"metadata": {"namespace": "team", "name": "a", "uid": "u", "resourceVersion": "1"}})
    assert sample(metrics, name, resource="jobs") > 1.7e9
    assert metrics.registry.get_sample_value(name, {"resource": "rltrainingjobs"}) is None
