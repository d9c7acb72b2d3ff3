"""One line for each change, none for a look that found nothing new."""

from typing import Any

import pytest

from rltrain.cli.changes import PROGRESS_SECONDS, Changes
from rltrain.cli.jobs import JobView, duration
from unit.cli.conftest import condition, job


def view(steps: int = 0, **status: Any) -> JobView:
    if steps:
        status["progress"] = {"phase": "Training", "attempt": 1, "envSteps": steps, "updatedAt": "2026-01-01T00:00:00Z"}
    return JobView({**job(**status), "metadata": {"name": "a", "namespace": "default", "uid": "u"}})


def test_the_same_look_twice_gives_nothing_new() -> None:
    changes = Changes()
    seen = view(10, state="Training", conditions=[condition("Training", "True", "Training", "Attempt 1 is training.")])

    assert list(changes.lines(seen)) == ["Training=True Training: Attempt 1 is training.", "state Training", "10 steps"]
    assert list(changes.lines(seen)) == []


def test_a_job_that_samples_nothing_is_as_far_as_its_trained_steps() -> None:
    progress = {"phase": "Training", "attempt": 1, "trainedSteps": 256, "updatedAt": "2026-01-01T00:00:00Z"}

    assert list(Changes().lines(view(state="Training", progress=progress))) == ["state Training", "256 steps"]


def test_what_is_not_the_case_yet_is_not_told() -> None:
    conditions = [
        condition("Failed", "False", "Running", "It runs."),
        condition("Succeeded", "False", "Running", "It runs."),
        condition("ClusterReady", "Unknown", "Unknown", "Not known yet."),
    ]

    assert list(Changes().lines(view(conditions=conditions))) == ["state Pending"]


def test_another_message_is_a_change() -> None:
    changes = Changes()
    list(changes.lines(view(conditions=[condition("ClusterReady", "False", "PodsStarting", "head 0/1 ready")])))

    told = list(changes.lines(view(conditions=[condition("ClusterReady", "False", "PodsStarting", "head 1/1 ready")])))

    assert told == ["ClusterReady=False PodsStarting: head 1/1 ready"]


def test_steps_alone_are_told_now_and_then() -> None:
    now = 0.0
    changes = Changes(lambda: now)
    told = []
    for second in range(25):
        now = float(second)
        told += [line for line in changes.lines(view(100 + second)) if "steps" in line]

    assert told == [f"{100 + second} steps" for second in range(0, 25, int(PROGRESS_SECONDS))]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (45, "45s"), (60, "1m"), (750, "12m30s"), (12_000, "3h20m"), (86_400 * 5 + 7200, "5d2h"), (-3, "0s")],
)
def test_durations_have_one_unit_or_two(seconds: float, text: str) -> None:
    assert duration(seconds) == text
