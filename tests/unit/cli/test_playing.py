"""How far an evaluation is shows on stderr: seldom in a pipe, live on a terminal."""

import io
import sys

import pytest

from rltrain.cli import playing as module
from rltrain.cli.playing import Seldom, playing


def test_ten_seconds_lie_between_two_lines() -> None:
    now = 0.0
    told: list[tuple[int, int]] = []
    watch = Seldom(10.0, lambda done, steps: told.append((done, steps)), clock=lambda: now)
    for second in range(35):
        now = float(second)
        watch(second, 100 * second)
    assert told == [(10, 1000), (20, 2000), (30, 3000)]


def test_lines_of_a_pipe_are_plain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.0)
    with playing(50) as watch:
        watch(3, 12345)
    assert capsys.readouterr() == ("", "3 of 50 episodes, 12,345 steps\n")


def test_line_of_a_terminal_is_live_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "_LIVE_SECONDS", 0.0)
    with playing(50) as watch:
        watch(3, 12345)
    written = terminal.getvalue()
    assert "3 of 50 episodes, 12,345 steps" in written
    assert written.endswith("\x1b[2K"), "the line is erased at the end"
