"""A serial run is the same every time, in whatever process."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trainer.runtime.runs import APEX, DQN, SPECS, job, marker, run_serially

RUNS = {
    **{plan: job(spec) for plan, spec in SPECS.items()},
    "Apex, two learners": job(APEX, learners={"replicas": 2}),
    "DQN, two workers": job(DQN, rollouts={"replicas": 2}),
}


@pytest.fixture(scope="module")
def another_process() -> Iterator[Executor]:
    """One that hashes strings in another way, as every Python does."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def written(path: Path, checkpoint: str | None) -> tuple[bytes, dict[str, Any]]:
    """A run's results, and its last checkpoint without the time of day at which it was saved."""
    return (path / "results.jsonl").read_bytes(), {**marker(checkpoint), "saved_at": ""}


@pytest.mark.parametrize("name", RUNS)
def test_two_serial_runs_write_the_same_bytes(name: str, another_process: Executor, tmp_path: Path) -> None:
    again = another_process.submit(run_serially, RUNS[name], tmp_path / "again")
    first = run_serially(RUNS[name], tmp_path / "first")
    written_first = written(tmp_path / "first", first.checkpoint)
    assert len(written_first[0].splitlines()) > 1
    assert written(tmp_path / "again", again.result().checkpoint) == written_first
