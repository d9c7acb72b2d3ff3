"""TensorBoard's curves, and what becomes of them and of training where they can't be written."""

import logging
import resource
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]

from rltrain.ops import Result
from rltrain.runtime.result import RunResult
from rltrain.runtime.tensorboard import TensorBoard

LITTLE = 200
"""Bytes: room for a part of a report."""


DONE = RunResult("Succeeded", "env_steps", 20, 0, 20.0, 1.0, None)


def report(steps: int, **values: Any) -> Result:
    return Result(steps, 0, 1, float(steps), 10.0, 1, 1, None, **values)


def events(file: Path) -> Iterator[Any]:
    """Events of a file, up to one that is cut short."""
    data = file.read_bytes()
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack("<Q", data[at : at + 8])
        if at + 16 + length > len(data):
            return
        yield Event.FromString(data[at + 12 : at + 12 + length])
        at += 16 + length


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"), key=lambda file: int(file.suffix[1:]))


def curve(folder: Path, name: str) -> list[tuple[int, float]]:
    """Steps and values."""
    return [
        (event.step, value.simple_value)
        for file in files(folder)
        for event in events(file)
        for value in event.summary.value
        if value.tag == name
    ]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may have so many bytes and no more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_numbers_become_curves_over_steps_and_an_evaluation_where_its_weights_are_from(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path, None)
    board.result(report(10, added={"mine": 3, "words": "no curve"}))
    board.result(report(20, evaluation={"env_steps": 10, "trained_steps": 5, "return_mean": 7.0}))
    board.finished(DONE)

    assert curve(tmp_path, "episode_return_mean") == [(10, 10.0), (20, 20.0)]
    assert curve(tmp_path, "added/mine") == [(10, 3.0)]
    assert curve(tmp_path, "evaluation/return_mean") == [(10, 7.0)]
    assert curve(tmp_path, "added/words") == []


def test_a_resumed_run_takes_back_the_points_after_its_checkpoint(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path, 30)
    board.result(report(40))

    started = [event.step for file in files(tmp_path) for event in events(file) if event.HasField("session_log")]
    assert started == [31]
    assert SessionLog.START == 1


def test_a_full_disk_holds_nobody_up_and_the_curves_go_on_in_another_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = TensorBoard(tmp_path, None)
    board.result(report(1))
    with room_for(files(tmp_path)[0].stat().st_size + LITTLE), caplog.at_level(logging.WARNING):
        for steps in range(2, 100):
            board.result(report(steps, added={f"curve {index}": index for index in range(20)}))
    assert len([record for record in caplog.records if "training goes on" in record.message]) == 1

    board.result(report(100))
    board.finished(DONE)
    assert curve(tmp_path, "episode_return_mean") == [(1, 1.0), (100, 100.0)]
    assert len(files(tmp_path)) == 2, "what holds nothing doesn't stay"


def test_a_disk_that_is_full_at_the_start_is_no_reason_not_to_begin(tmp_path: Path) -> None:
    with room_for(0):
        board = TensorBoard(tmp_path, 5)
        board.result(report(6))
    board.result(report(7))

    assert curve(tmp_path, "episode_return_mean") == [(7, 7.0)]
    assert [event.step for file in files(tmp_path) for event in events(file) if event.HasField("session_log")] == [6]
