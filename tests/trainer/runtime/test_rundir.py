"""Whose a run directory is, and what may be done with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from rltrain.api.errors import CheckpointMismatch, RunDirectoryUnusable
from rltrain.runtime.rundir import RunDirectory
from trainer.runtime.runs import DDPPO, DQN, job, results, run_serially

HOLDER = """
import sys
from pathlib import Path
from rltrain.runtime.rundir import RunDirectory
with RunDirectory(Path(sys.argv[1])).hold(resume=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_in_use_is_refused_until_its_process_is_gone(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for resume in (False, True):
            with pytest.raises(RunDirectoryUnusable, match=f"in use by process {holder.pid}"):
                run_serially(job(DQN), tmp_path / "run", resume=resume)
        assert [path.name for path in (tmp_path / "run" / "attempts").iterdir()] == ["0001.json"]
        holder.kill()
    assert run_serially(job(DQN, stop={"envSteps": 200}), tmp_path / "run", resume=True).env_steps >= 200


def test_a_cluster_takes_a_directory_over_from_a_head_that_may_live_on(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with directory.hold(resume=True):
        earlier = directory.attempt("pod a")
        directory.open()
        assert directory.attempt("pod b").number == earlier.number + 1
        assert earlier.superseded


def test_a_run_that_never_came_to_a_checkpoint_is_started_over(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.open()
    directory.attempt("pid 1")
    directory.results.write_text('{"env_steps": 999999}\n')
    (tmp_path / "run" / "finished.json").write_text("{}")
    outcome = run_serially(job(DQN, stop={"envSteps": 200}), tmp_path / "run")
    assert outcome.state == "Succeeded"
    assert max(line["env_steps"] for line in results(tmp_path / "run")) < 999999
    assert [path.name for path in (tmp_path / "run" / "attempts").iterdir()] == ["0001.json"]


def test_broken_checkpoints_are_a_run_that_isnt_thrown_away(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.open()
    directory.attempt("pid 1")
    (tmp_path / "run" / "checkpoints" / "000000000100-0001").mkdir(parents=True)
    with pytest.raises(RunDirectoryUnusable, match="--resume"):
        run_serially(job(DQN), tmp_path / "run")


def test_resuming_what_has_no_checkpoint_says_that_it_starts_at_zero(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run", resume=True)
    assert outcome.state == "Succeeded"
    assert "no checkpoint yet: starting at step 0" in caplog.text


def test_a_finished_run_that_goes_on_is_not_finished_meanwhile(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    part = run_serially(job(DQN, stop={"envSteps": 5000}), tmp_path / "run", resume=True, looks=60)
    assert part.state == "Interrupted"
    assert RunDirectory(tmp_path / "run").outcome() is None


def test_a_resume_that_is_refused_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    left = {name: (tmp_path / "run" / name).read_bytes() for name in ("manifest.yaml", "finished.json")}
    for other in (job(DDPPO), job(DQN, seed=9), job(DQN, config={"hiddens": [9]})):
        with pytest.raises(CheckpointMismatch):
            run_serially(other, tmp_path / "run", resume=True)
        assert {name: (tmp_path / "run" / name).read_bytes() for name in left} == left


def test_reports_that_are_no_text_any_more_stop_no_resume(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 200}), tmp_path / "run")
    with (tmp_path / "run" / "results.jsonl").open("ab") as file:
        file.write(b"\xff\xff\n")
    assert run_serially(job(DQN, stop={"envSteps": 300}), tmp_path / "run", resume=True).state == "Succeeded"
    assert results(tmp_path / "run")[-1]["env_steps"] >= 300


def test_what_has_changed_in_the_manifest_is_told_on_resuming(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    caplog.clear()
    run_serially(job(DQN, stop={"envSteps": 200}, config={"lr": 0.001}), tmp_path / "run", resume=True)
    assert "spec.config.lr: 0.0005 -> 0.001; spec.stop.envSteps: 100 -> 200" in caplog.text
