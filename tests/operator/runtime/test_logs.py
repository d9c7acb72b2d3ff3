"""A line of log is one JSON object with the job that it is about."""

import json
import logging

from rltrain_operator.runtime.logs import JsonFormatter


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
