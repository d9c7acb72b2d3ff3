"""The best checkpoint is kept, whatever comes after it."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from rltrain.api.errors import StorageFull
from rltrain.api.status import CheckpointStatus
from rltrain.cli.main import _run
from rltrain.flow import MetricsContext
from rltrain.flow.serial import SerialBackend
from rltrain.runtime.build import Training
from rltrain.runtime.checkpoint_store import Best
from rltrain.runtime.local import run_locally
from rltrain.runtime.observers import Observers, Silent
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.saving import Saver
from trainer.runtime.runs import CQL, DQN, InterruptedAt, job, marker, results, run_serially

KEPT = {"everySeconds": 0.1, "keep": 1, "keepBest": True}
EVALUATED = {"evaluation_interval": 1, "evaluation_num_episodes": 3, "timesteps_per_iteration": 400}


def best_of(run: Path) -> dict[str, Any]:
    """The mark, and the steps of the checkpoint that it names."""
    read: dict[str, Any] = json.loads((run / "checkpoints" / "best.json").read_text())
    saved = marker(run / "checkpoints" / read["checkpoint"])
    return {**read, "steps": saved["env_steps"] or saved["trained_steps"]}


def whole(run: Path) -> list[str]:
    return sorted(path.parent.name for path in (run / "checkpoints").glob("*/checkpoint.json"))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_checkpoint_with_the_best_evaluation_is_kept_and_told_of(
    workers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    changes = {**EVALUATED, "evaluation_num_workers": workers}
    outcome = run_serially(job(CQL, config=changes, stop={"trainedSteps": 4000}, checkpoint=KEPT), run)
    evaluations = [line["evaluation"] for line in results(run) if "evaluation" in line]
    assert len(evaluations) >= 9
    first_best = max(evaluations, key=lambda evaluation: evaluation["episode_return_mean"])
    assert first_best is not evaluations[-1], "or any newest one would do"
    mark = best_of(run)
    assert mark["metric"] == "evaluation"
    assert (mark["return_mean"], mark["steps"]) == (first_best["episode_return_mean"], first_best["trained_steps"])
    assert whole(run) == [mark["checkpoint"], Path(str(outcome.checkpoint)).name]
    assert outcome.best_checkpoint == str(run / "checkpoints" / mark["checkpoint"])
    assert json.loads((run / "finished.json").read_text())["best_checkpoint"] == outcome.best_checkpoint
    assert (
        f"the best so far, with return {mark['return_mean']:.2f}: {outcome.best_checkpoint}" in capsys.readouterr().err
    )

    assert _run(["evaluate", str(run), "--best", "--episodes", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["checkpoint"] == outcome.best_checkpoint


class Saved(Silent):
    """Return means of all checkpoints, as they stand in them."""

    def __init__(self) -> None:
        self.returns: dict[str, float | None] = {}

    def saved(self, checkpoint: CheckpointStatus) -> None:
        self.returns[Path(checkpoint.path).name] = marker(checkpoint.path)["episode_return_mean"]


def test_without_evaluations_the_best_is_the_one_with_the_best_mean_of_training(tmp_path: Path) -> None:
    saved = Saved()
    manifest = job(DQN, stop={"envSteps": 1200}, checkpoint=KEPT, config={"metrics_num_episodes_for_smoothing": 5})
    run_locally(
        manifest, tmp_path / "run", resume=False, serial=True, interrupts=InterruptedAt(10**6), watchers=[saved]
    )
    means = {name: value for name, value in saved.returns.items() if value is not None}
    assert len(means) > 5
    best = max(means, key=lambda name: means[name])
    assert best != max(means), "or the newest one would do"
    mark = best_of(tmp_path / "run")
    assert (mark["checkpoint"], mark["return_mean"], mark["metric"]) == (best, means[best], "episodes")
    assert whole(tmp_path / "run") == [best, max(saved.returns)]


@pytest.mark.parametrize(("before", "stays"), [(1e9, True), (-1e9, False)])
def test_a_resumed_run_keeps_the_best_one_unless_it_finds_a_better(before: float, stays: bool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    manifest = job(CQL, config=EVALUATED, checkpoint=KEPT)
    run_serially(manifest, run, looks=60)
    mark = run / "checkpoints" / "best.json"
    read = json.loads(mark.read_text())
    mark.write_text(json.dumps({**read, "return_mean": before}))
    run_serially(manifest, run, resume=True)
    assert (json.loads(mark.read_text())["checkpoint"] == read["checkpoint"]) == stays
    assert (run / "checkpoints" / json.loads(mark.read_text())["checkpoint"] / "checkpoint.json").exists()


def test_a_checkpoint_stays_while_it_is_evaluated(tmp_path: Path) -> None:
    manifest = job(DQN, config=EVALUATED, checkpoint=KEPT)
    directory = RunDirectory(tmp_path / "run", keep=1)
    directory.open()
    metrics = MetricsContext()
    with metrics.active():
        training = Training(manifest, SerialBackend(), metrics)
        saver = Saver(manifest, directory, directory.attempt("test"), Observers([]), metrics, None)
        candidate = saver.save_candidate(training)
        assert candidate is not None
        for _ in range(20):
            training.flow.tick(1.0)
        newest = saver.save(training)
        assert whole(directory.path) == [candidate.path.name, newest.path.name]
        saver.judge(3.0)
        assert saver.best == Best(candidate.path, "evaluation", 3.0)
        for _ in range(20):
            training.flow.tick(1.0)
        loser = saver.save_candidate(training)
        assert loser is not None
        saver.judge(2.0)
        assert saver.best == Best(candidate.path, "evaluation", 3.0)


def test_returns_of_evaluations_and_of_training_are_not_compared(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_serially(job(DQN, checkpoint=KEPT), run, looks=80)
    mark = run / "checkpoints" / "best.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "return_mean": 1e9}))
    run_serially(job(DQN, checkpoint=KEPT, config={"evaluation_interval": 1}), run, resume=True)
    assert json.loads(mark.read_text())["metric"] == "evaluation"


def test_the_outcome_of_a_run_whose_last_save_finds_no_room_says_so_and_keeps_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("rltrain.runtime.checkpoint_store.write_checkpoint", full)
    run = tmp_path / "run"
    with pytest.raises(StorageFull, match="no room for a checkpoint in") as error:
        run_serially(job(DQN), run)
    assert "training goes on" not in str(error.value)
    told = json.loads((run / "finished.json").read_text())
    assert told["env_steps"] > 0
    assert told["trained_steps"] > 0
