"""What people read while a run goes on."""

import io
from typing import Any

import pytest

from rltrain.api.finite import finite
from rltrain.api.job import Stop
from rltrain.api.run_policy import RunPolicy
from rltrain.api.status import Progress
from rltrain.runtime.console import PlainConsole, conclude, describe, duration
from rltrain.runtime.criteria import Standing, eta_seconds, reached
from rltrain.runtime.result import RunResult


def progress(**changes: Any) -> Progress:
    fields = {"phase": "Training", "attempt": 1, "updated_at": "2026-01-01T00:00:00Z", **changes}
    return Progress.model_validate(fields)


def test_a_line_has_steps_return_throughput_workers_and_time_left() -> None:
    line = describe(
        progress(
            env_steps=12345,
            episodes=10,
            episode_return_mean=21.5,
            steps_per_second=999.6,
            workers_healthy=1,
            workers_wanted=2,
            eta_seconds=200,
        )
    )
    assert line == ("12,345 steps, 10 episodes, return 21.50, 1,000 steps/s, 1/2 workers, at most 3 min 20 s left")


def test_a_pipe_gets_a_line_at_each_change_of_phase_and_not_at_each_tick() -> None:
    stream = io.StringIO()
    console = PlainConsole(stream)
    for step in range(100):
        console.progress(progress(env_steps=step))
    console.progress(progress(phase="Finished", env_steps=100))
    assert stream.getvalue().count("\n") == 2


@pytest.mark.parametrize(("seconds", "words"), [(3.9, "3 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_durations_are_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_end_says_how_and_why_or_what_to_do() -> None:
    done = RunResult("Succeeded", "env_steps", 500, 400, 3.5, 9.0, "runs/x")
    assert conclude(done) == "succeeded (env_steps): return 3.50 after 500 steps in 9 s; checkpoint: runs/x"
    assert conclude(RunResult("Failed", "error", 0, 0, None, 0, None, message="do this")) == "failed: do this"


def test_criteria_hold_in_their_order() -> None:
    stop = Stop(episode_return_mean=10.0, env_steps=100, time_seconds=5.0)
    limits = RunPolicy(active_deadline_seconds=5)
    assert reached(stop, limits, Standing(99, 4.9, 9.9)) is None
    assert reached(stop, limits, Standing(100, 9.0, 10.0)) == "episode_return_mean"
    assert reached(stop, limits, Standing(99, 4.0, 10.0, smooth=False)) is None, "a lucky episode or two"
    assert reached(stop, limits, Standing(100, 9.0, None)) == "env_steps"
    assert reached(stop, limits, Standing(0, 5.0, None)) == "time_s"
    assert reached(Stop(env_steps=100), limits, Standing(0, 5.0, None)) == "deadline"
    assert reached(Stop(trained_steps=64), limits, Standing(999, 1.0, None, trained_steps=63)) is None
    assert reached(Stop(trained_steps=64), limits, Standing(0, 1.0, None, trained_steps=64)) == "trained_steps"


def test_time_left_is_to_the_nearer_of_steps_and_time() -> None:
    stop = Stop(env_steps=1000, time_seconds=30.0)
    assert eta_seconds(stop, Standing(500, 10.0, None, 100.0)) == 5.0
    assert eta_seconds(stop, Standing(500, 28.0, None, 100.0)) == 2.0
    assert eta_seconds(Stop(episode_return_mean=3.0), Standing(1, 1.0, None, 1.0)) is None


def test_json_has_null_where_a_number_is_not_one() -> None:
    assert finite({"a": [float("nan"), 1.5, float("inf")], "b": (None, "x")}) == {
        "a": [None, 1.5, None],
        "b": [None, "x"],
    }
