"""`rltrain run` and `rltrain evaluate` as a user meets them: processes, exit codes, what is printed and left."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltrain.cli.entry import main
from trainer.runtime.processes import kill_tree, tree
from trainer.runtime.runs import CQL, DDPPO, DQN

CODE = "from rltrain.cli.entry import main; main()"


class Done(subprocess.CompletedProcess[str]):
    """How a command ended."""

    def err_lines_with(self, words: str) -> int:
        """Lines of stderr that say something."""
        return sum(words in line for line in self.stderr.splitlines())


class Shell:
    """Starts commands in a folder, in a session of their own as a terminal does; or calls them, which is quicker."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._captured = captured
        self.started: list[subprocess.Popen[str]] = []

    def write(self, spec: dict[str, Any], **changes: Any) -> None:
        manifest = {
            "apiVersion": "rltrain.dev/v1alpha1",
            "kind": "RLTrainingJob",
            "metadata": {"name": "job"},
            "spec": {**spec, **changes},
        }
        (self.folder / "job.yaml").write_text(json.dumps(manifest))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str) -> Done:
        self._captured.readouterr()
        with contextlib.chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["rltrain", *arguments])
            with pytest.raises(SystemExit) as exit_:
                main()
        return Done(arguments, int(str(exit_.value.code)), *self._captured.readouterr())

    def checkpoints(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob("runs/job/checkpoints/*/checkpoint.json"))


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    shell = Shell(tmp_path, capsys)
    yield shell
    for process in shell.started:
        if process.poll() is None:
            kill_tree(process.pid)
        process.communicate()


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder of what is started; Ray's sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="rlt", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def read_until(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stderr is not None
    seen: list[str] = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said:\n{''.join(seen)}")


def test_json_is_the_last_line_and_names_the_criterion(shell: Shell) -> None:
    shell.write(DQN)
    done = shell.run("run", "job.yaml", "--serial", "--json", "--set", "stop.envSteps=200")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["state"] == "Succeeded"
    assert outcome["stop_reason"] == "env_steps"
    assert outcome["env_steps"] == 200
    assert {"episode_return_mean", "time_s", "checkpoint"} <= outcome.keys()
    assert "succeeded (env_steps)" in done.stderr
    left = {path.name for path in (shell.folder / "runs" / "job").iterdir()}
    assert {"manifest.yaml", "results.jsonl", "checkpoints", "attempts", "finished.json"} <= left
    assert any(name.startswith("events.out.tfevents") for name in left)

    scores = shell.run("evaluate", "runs/job", "--episodes", "3", "--json")
    assert scores.returncode == 0, scores.stderr
    read = json.loads(scores.stdout)
    assert read["episode_return_min"] <= read["episode_return_mean"] <= read["episode_return_max"]
    assert read["episodes"] == 3
    assert shell.run("evaluate", outcome["checkpoint"], "--episodes", "3", "--json").stdout == scores.stdout

    again = shell.run("run", "job.yaml", "--serial")
    assert again.returncode == 2
    assert "--resume" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "reason", "words"),
    [
        (["none.yaml"], 2, "InvalidInput", "there is no file none.yaml"),
        (["job.yaml", "--set", "env.id=CartPoel-v1"], 2, "UnknownEnvironment", "did you mean CartPole-v1"),
        (["job.yaml", "--set", "env.id=Ant-v5"], 2, "UnknownEnvironment", "pip install"),
        (["job.yaml", "--out", "/proc/foo"], 2, "RunDirectoryUnusable", "/proc/foo can't be made"),
        (["job.yaml", "--out", "job.yaml/x"], 2, "RunDirectoryUnusable", "is below, a file"),
        (["job.yaml", "--out", "job.yaml"], 2, "RunDirectoryUnusable", "a file: give a directory with --out"),
        (["job.yaml", "--out", "."], 2, "RunDirectoryUnusable", "holds something that isn't a run, such as job.yaml"),
        (["job.yaml", "--out", ".", "--resume"], 2, "RunDirectoryUnusable", "holds something that isn't a run"),
        (["job.yaml", "--set", "env.id=trainer.runtime.flaky:Broken"], 1, "EnvironmentFailed", "no licence"),
    ],
)
def test_a_failure_is_told_once_and_as_json_too_and_leaves_nothing_behind(
    shell: Shell, arguments: list[str], code: int, reason: str, words: str
) -> None:
    shell.write(DQN)
    failed = shell.run("run", *arguments, "--json")
    assert failed.returncode == code
    assert failed.err_lines_with(words) == 1
    outcome = json.loads(failed.stdout.splitlines()[-1])
    assert (outcome["state"], outcome["stop_reason"], outcome["reason"]) == ("Failed", "error", reason)
    assert words in outcome["message"]
    assert outcome["checkpoint"] is None
    assert [path.name for path in shell.folder.iterdir()] == ["job.yaml"]


def test_a_run_that_fails_later_says_so_in_finished_json_with_its_newest_checkpoint(shell: Shell) -> None:
    env = {
        "id": "trainer.runtime.flaky:Flaky",
        "kwargs": {"folder": str(shell.folder), "times": 1000, "at": 300},
        "maxRestarts": 0,
    }
    shell.write(DQN, env=env, checkpoint={"everySeconds": 0.1})
    failed = shell.run("run", "job.yaml", "--serial", "--json")
    assert failed.returncode == 1
    outcome = json.loads(failed.stdout.splitlines()[-1])
    assert (outcome["state"], outcome["reason"]) == ("Failed", "EnvironmentFailed")
    assert outcome["checkpoint"].endswith(shell.checkpoints()[-1])
    assert json.loads((shell.folder / "runs" / "job" / "finished.json").read_text()) == outcome
    assert failed.err_lines_with("the game crashed") == 1


def test_the_written_manifest_does_the_same_run_again(shell: Shell) -> None:
    shell.write(DQN)
    first = shell.run("run", "job.yaml", "--serial", "--json", "--set", "stop.envSteps=200", "--set", "seed=7")
    again = shell.run("run", "runs/job/manifest.yaml", "--serial", "--json", "--out", "again")
    assert again.returncode == 0, again.stderr
    ends = [json.loads(done.stdout.splitlines()[-1]) for done in (first, again)]
    hashes = [json.loads((shell.folder / end["checkpoint"] / "checkpoint.json").read_text())["hashes"] for end in ends]
    assert hashes[0] == hashes[1]


def test_corrupt_checkpoints_and_unknown_environments_are_sentences_with_exit_codes(shell: Shell) -> None:
    shell.write(DQN)
    shell.run("run", "job.yaml", "--serial", "--set", "stop.envSteps=200", "--set", "checkpoint.keep=1")
    (checkpoint,) = (shell.folder / "runs" / "job" / "checkpoints").iterdir()
    os.truncate(checkpoint / "workers.npz", 5)
    for command in (["run", "job.yaml", "--serial", "--resume"], ["evaluate", "runs/job"]):
        refused = shell.run(*command)
        assert refused.returncode == 1
        assert "workers.npz has another size than recorded" in refused.stderr
        assert "Traceback" not in refused.stderr
    unknown = shell.run("run", "job.yaml", "--serial", "--out", "b", "--set", "env.id=CartPoel-v1")
    assert unknown.returncode == 2
    assert "CartPole-v1" in unknown.stderr
    assert "Traceback" not in unknown.stderr


@pytest.mark.parametrize("spec", [{**DQN, "rollouts": {"replicas": 1}}, DDPPO], ids=["DQN", "DDPPO"])
def test_ctrl_c_saves_one_checkpoint_and_leaves_no_process_and_no_file_of_rays(
    spec: dict[str, Any], shell: Shell, temporary: Path
) -> None:
    shell.write(spec, stop={"envSteps": 10_000_000}, checkpoint={"everySeconds": 10_000})
    process = shell.start("run", "job.yaml", "--json")
    read_until(process, "0 steps, 0 episodes")
    children = tree(process.pid)[1:]
    assert children
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    outcome = json.loads(out.splitlines()[-1])
    assert (outcome["state"], outcome["stop_reason"]) == ("Interrupted", "interrupted")
    assert len(shell.checkpoints()) == 1
    assert outcome["checkpoint"].endswith(shell.checkpoints()[0])
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert list(temporary.iterdir()) == []

    shell.write(spec, stop={"envSteps": outcome["env_steps"] + 1})
    resumed = shell.run("run", "job.yaml", "--resume", "--serial", "--json")
    assert resumed.returncode == 0, resumed.stderr


EARLY = """
import os, signal, sys
class Interrupting:
    left = int(os.environ["TIMES"])
    def find_spec(self, name, path=None, target=None):
        if name in ("typer", "torch") and self.left:
            self.left -= 1
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from rltrain.cli.entry import main
main()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_modules_load_is_heard(shell: Shell, times: int) -> None:
    shell.write(DQN, stop={"envSteps": 10_000_000})
    done = subprocess.run(
        [sys.executable, "-c", EARLY, "run", "job.yaml", "--json"],
        cwd=shell.folder,
        env={**os.environ, "TIMES": str(times)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["state"] == "Interrupted"
    assert len(shell.checkpoints()) == (1 if times == 1 else 0)


@pytest.mark.parametrize("place", [".", "jobs"], ids=["in_the_working_folder", "beside_the_manifest"])
def test_a_users_own_environment_is_found(shell: Shell, place: str) -> None:
    module = f"envs_found_in_{place.replace('.', 'here')}"
    (shell.folder / "jobs").mkdir()
    code = "from gymnasium.envs.classic_control.cartpole import CartPoleEnv\nclass Mine(CartPoleEnv): pass\n"
    (shell.folder / place / f"{module}.py").write_text(code)
    shell.write(DQN, env={"id": f"{module}:Mine"}, stop={"envSteps": 200})
    (shell.folder / "job.yaml").rename(shell.folder / "jobs" / "job.yaml")
    done = shell.run("run", "jobs/job.yaml", "--serial")
    assert done.returncode == 0, done.stderr


def test_second_ctrl_c_leaves_at_once_without_processes_and_files(shell: Shell, temporary: Path) -> None:
    shell.write(DQN, rollouts={"replicas": 1}, stop={"envSteps": 10_000_000})
    process = shell.start("run", "job.yaml", "--json")
    read_until(process, "starting: 0 of 1")
    children = tree(process.pid)[1:]
    os.killpg(process.pid, signal.SIGINT)
    read_until(process, "once more to leave at once")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "leaving at once" in err
    assert json.loads(out.splitlines()[-1])["state"] == "Interrupted"
    for pid in children:
        wait_gone(pid)
    assert list(temporary.iterdir()) == []


def wait_gone(pid: int) -> None:
    """Until a process is gone; the kernel ends children of a dead parent a moment later."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ready, _, _ = select.select([descriptor], [], [], 30)
    os.close(descriptor)
    assert ready, f"process {pid} lives on: {Path(f'/proc/{pid}/cmdline').read_text()}"


def shell_line(shell: Shell, line: str) -> int:
    """How a line of bash ends."""
    bash = ["bash", "-c", f"set -o pipefail; {line}"]
    return subprocess.run(
        bash,
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    ).returncode


@pytest.mark.parametrize(
    "line",
    ["$X 2>&1 | head -1 >/dev/null", "$X >/dev/full 2>&1", "$X >&- 2>&-", "$X 2>/dev/full | true"],
    ids=["head", "full", "closed", "nobody"],
)
def test_training_goes_on_to_its_end_when_nobody_reads_of_it(shell: Shell, line: str) -> None:
    shell.write(DQN)
    command = f'{sys.executable} -c "{CODE}" run job.yaml --serial --json'
    assert shell_line(shell, line.replace("$X", command)) == 0
    outcome = json.loads((shell.folder / "runs/job/finished.json").read_text())
    assert (outcome["state"], outcome["env_steps"]) == ("Succeeded", 704)


CHATTY = """
import gymnasium

class Chatty(gymnasium.wrappers.TimeLimit):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1").unwrapped, 20)

    def step(self, action):
        print("a step", end="")
        return super().step(action)
"""


def test_what_an_environment_prints_stays_off_the_last_line_and_its_module_is_found_again(shell: Shell) -> None:
    """The module lies beside the manifest, which isn't in the working folder."""
    shell.write(DQN, env={"id": "chatty_envs:Chatty"}, stop={"envSteps": 100})
    elsewhere = shell.folder / "manifests"
    elsewhere.mkdir()
    (shell.folder / "job.yaml").rename(elsewhere / "job.yaml")
    (elsewhere / "chatty_envs.py").write_text(CHATTY)
    done = shell.run("run", "manifests/job.yaml", "--serial", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a stepa step")
    assert json.loads(done.stdout.splitlines()[-1])["state"] == "Succeeded"
    (checkpoint,) = shell.checkpoints()
    for run in ("runs/job", f"runs/job/checkpoints/{checkpoint}"):
        process = shell.start("evaluate", run, "--episodes", "1", "--json")  # where it isn't imported already
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["episodes"] == 1


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        (["evaluate", "nowhere", "--json"], "InvalidInput", "there is no nowhere"),
        (["evaluate", "nowhere", "-o", "json"], "InvalidInput", "there is no nowhere"),
        (["evaluate", "--json"], "Usage", "RUN is missing"),
        (["evaluate", "x", "--episodes", "0", "--json"], "Usage", "--episodes: must be at least 1"),
        (["run", "--json"], "Usage", "FILE is missing"),
        (["status", "--outptu", "json", "--output=json"], "Usage", "there is no option --outptu"),
    ],
)
def test_machines_are_told_of_failures_and_wrong_usage_too(
    shell: Shell, arguments: list[str], reason: str, words: str
) -> None:
    done = shell.run(*arguments)
    told = json.loads(done.stdout)
    assert (told["state"], told["reason"], told["exit_code"]) == ("Failed", reason, done.returncode == 2 and 2)
    assert words in told["message"]
    assert words in done.stderr


def test_what_only_training_can_see_is_told_with_its_line(shell: Shell) -> None:
    shell.write(CQL)
    manifest = json.loads((shell.folder / "job.yaml").read_text())
    manifest["spec"]["config"]["input"] = "nowhere.npz"
    (shell.folder / "job.yaml").write_text(json.dumps(manifest, indent=1))
    line = next(
        n for n, text in enumerate((shell.folder / "job.yaml").read_text().splitlines(), 1) if '"input"' in text
    )
    done = shell.run("run", "job.yaml", "--serial")
    assert done.returncode == 2
    assert done.err_lines_with(f"job.yaml:{line}:4: spec.config.input: there is no nowhere.npz") == 1
