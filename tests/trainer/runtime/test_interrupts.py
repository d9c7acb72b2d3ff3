"""Signals that end a run are answered with a word."""

import os
import signal

import pytest

from rltrain.runtime.interrupts import Interrupts


@pytest.mark.parametrize(
    ("number", "asked", "way_out"),
    [(signal.SIGINT, "interrupted", True), (signal.SIGTERM, "terminated", False)],
    ids=["SIGINT", "SIGTERM"],
)
def test_who_ends_a_run_is_told_what_it_waits_for(
    number: signal.Signals, asked: str, way_out: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        assert interrupts.asked == asked
    said = capfd.readouterr().err
    assert said.startswith(f"{asked}: stopping as soon as everything is saved")
    assert ("once more to leave at once" in said) is way_out, "a second SIGTERM changes nothing"
