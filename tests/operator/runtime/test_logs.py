"""A line of log is one JSON object with the job that it is about."""

import json
import logging

import pytest

from rltrain_operator.runtime.logs import JsonFormatter, PlainFormatter


def test_line_carries_message_job_and_exception() -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "visit %s", ("failed",), (ValueError, error, None))
    record.job = "team/cartpole"

    line = json.loads(JsonFormatter().format(record))

    assert line["message"] == "visit failed"
    assert line["level"] == "ERROR"
    assert line["job"] == "team/cartpole"
    assert "boom" in line["exception"]


def test_plain_line_names_the_job_too_before_the_exceptions_own_lines() -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "failed", (), (ValueError, error, None))
    record.job = "team/cartpole"

    first, second, *_ = PlainFormatter("%(levelname)s %(message)s").format(record).split("\n")

    assert first == "ERROR failed job=team/cartpole"
    assert second == "ValueError: boom"


@pytest.mark.parametrize(("kind", "key"), [("RLTrainingJob", "job"), ("Job", "child")])
def test_object_that_kopf_speaks_of_is_named_as_we_name_it(kind: str, key: str) -> None:
    record = logging.LogRecord("kopf.objects", logging.ERROR, "f", 1, "Handler failed", (), None)
    record.k8s_ref = {"kind": kind, "namespace": "team", "name": "cartpole", "uid": "u"}
    record.k8s_skip = False

    line = json.loads(JsonFormatter().format(record))

    assert line[key] == "team/cartpole"
    assert not {"k8s_ref", "k8s_skip"} & set(line)
