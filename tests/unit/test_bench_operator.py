"""The operator's bench counts requests as they are, and asks both contenders for the same work."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench.operator import audit
from bench.operator.__main__ import size
from bench.operator.contenders import KubeRay, Ours, path
from bench.operator.process import used
from bench.operator.ratios import ratios
from bench.report import RANGES, report

from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import OperatorConfig, render
from testbed.fakenodes import FAIL_LABEL, stages


def said(verb: str, user: str = "us", stage: str = "ResponseComplete", **what: str) -> dict[str, Any]:
    return {"verb": verb, "user": {"username": user}, "stage": stage, "objectRef": what}


def test_requests_are_counted_once_by_verb_and_resource_and_only_the_users_own(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    events = [
        said("create", resource="pods"),
        said("create", resource="pods"),
        said("patch", resource="jobs", subresource="status"),
        said("create", "somebody", resource="pods"),
        said("watch", stage="ResponseStarted", resource="jobs"),
        said("watch", stage="ResponseComplete", resource="jobs"),
    ]
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    counted = audit.Audit(log, "us").news()
    assert counted == {"create pods": 2, "patch jobs/status": 1, "watch jobs": 1}
    assert audit.writes(counted) == 3


def test_a_line_that_is_still_written_is_counted_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    line = json.dumps(said("list", resource="jobs")) + "\n"
    log.write_text(line + line[:20])
    reader = audit.Audit(log, "us")
    assert reader.news() == Counter({"list jobs": 1})
    log.write_text(line + line)
    assert reader.news() == Counter({"list jobs": 1})
    assert reader.news() == Counter()


def test_a_process_has_used_time_and_memory() -> None:
    before = used(os.getpid())
    while used(os.getpid()).cpu == before.cpu:
        pass
    assert 10 < before.resident <= before.peak


def test_our_job_is_valid_and_has_as_many_pods_as_the_other_operators() -> None:
    made = Ours().job("job-1", 4)
    job = RLTrainingJob.model_validate({**made, "metadata": {**made["metadata"], "uid": "u"}})
    jobs = [child for child in render(job, OperatorConfig("image", None), "token") if child["kind"] == "Job"]
    assert [child["spec"]["completions"] for child in jobs] == [1, 4]
    other = KubeRay().job("job-1", 4)["spec"]
    assert [group["replicas"] for group in other["workerGroupSpecs"]] == [4]


@pytest.mark.parametrize("contender", [Ours(), KubeRay()], ids=lambda contender: contender.name)
def test_an_object_that_nobody_has_looked_at_is_not_well(contender: Ours | KubeRay) -> None:
    made = contender.job("job-1", 2)
    assert not contender.well(made)
    assert made["apiVersion"] in path(contender, "job-1")


def test_a_lost_head_is_seen_in_what_either_operator_says() -> None:
    made = KubeRay().job("job-1", 2)
    status = {"state": "ready", "readyWorkerReplicas": 2}
    lost = [{"type": "HeadPodReady", "status": "False"}]
    assert KubeRay().well({**made, "status": status})
    assert not KubeRay().well({**made, "status": {**status, "conditions": lost}})
    ready = {"type": "ClusterReady", "status": "True"}
    assert Ours().well({"status": {"conditions": [ready]}})
    assert not Ours().well({"status": {"conditions": [{**ready, "status": "False"}]}})


def test_a_range_belongs_to_a_size_and_a_ratio_that_there_are() -> None:
    rows = {name: wanted for name, wanted in json.loads(RANGES.read_text()).items() if " x 1+" in name or name == "CRD"}
    assert rows
    for row, wanted in rows.items():
        assert wanted.keys() <= {ratio.name for ratio in ratios(row)}
        assert row == "CRD" or str(size(row.replace(" x 1+", "x").replace(",", ""))) == row


def test_what_one_contender_could_not_do_is_a_miss_and_no_error() -> None:
    row = "200 x 1+4"
    entries = report({row: {"ours": [{"made_s": 10.0, "pods_per_s": 100.0}]}}, {row: ratios(row)[:1]})
    assert [(entry["value"], entry["within"]) for entry in entries] == [(None, False)]


def test_pods_run_until_they_are_deleted_or_chosen_to_fail() -> None:
    by_name = {stage["metadata"]["name"]: stage["spec"] for stage in stages()}
    ends = [name for name, spec in by_name.items() if "phase: Succeeded" in spec["next"].get("statusTemplate", "")]
    assert ends == []
    assert FAIL_LABEL in json.dumps(by_name["pod-fails"]["selector"])
