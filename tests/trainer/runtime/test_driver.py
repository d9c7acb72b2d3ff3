"""The driver's loop: how runs end, what they leave, and what they go on from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltrain.api.errors import (
    CheckpointMismatch,
    EnvironmentFailed,
    RunDirectoryUnusable,
    TrainingFailed,
    UnknownEnvironment,
    UnsupportedSpace,
)
from rltrain.flow import Actor
from rltrain.flow.serial import SerialBackend
from rltrain.runtime.attempts import Attempts
from rltrain.runtime.driver import Driver
from rltrain.runtime.local import run_locally
from rltrain.runtime.observers import Observers, ResultsFile
from rltrain.runtime.rundir import RunDirectory
from trainer.runtime.runs import APEX, DDPPO, DQN, SAC, InterruptedAt, job, marker, results, run_serially


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ({"envSteps": 300}, "env_steps"),
        ({"timeSeconds": 0.3}, "time_s"),
        ({"episodeReturnMean": 5, "envSteps": 5000}, "episode_return_mean"),
        ({"episodeReturnMean": 5000, "envSteps": 300, "timeSeconds": 100}, "env_steps"),
    ],
)
def test_the_criterion_that_was_reached_first_is_the_stop_reason(
    stop: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    outcome = run_serially(job({**DQN, "stop": stop}), tmp_path / "run")
    assert (outcome.state, outcome.stop_reason, outcome.exit_code) == ("Succeeded", reason, 0)
    finished = json.loads((tmp_path / "run" / "finished.json").read_text())
    assert finished["stop_reason"] == reason
    assert marker(outcome.checkpoint)["env_steps"] == outcome.env_steps == results(tmp_path / "run")[-1]["env_steps"]


@pytest.mark.parametrize(("window", "told"), [(2, False), (1000, True)])
def test_a_return_that_was_never_judged_is_told_of_at_the_end(
    window: int, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = job(
        DQN,
        stop={"envSteps": 1000, "episodeReturnMean": 5000},
        config={"metrics_num_episodes_for_smoothing": window, "learning_starts": 400},
    )
    outcome = run_serially(wanted, tmp_path / "run")
    assert outcome.stop_reason == "env_steps"
    episodes = results(tmp_path / "run")[-1]["episodes"]
    assert (f"never compared with anything: {episodes} of the 1,000 episodes" in caplog.text) is told


def test_deadline_counts_over_attempts_and_is_a_failure(tmp_path: Path) -> None:
    limited = job({**DQN, "stop": {"envSteps": 100_000}}, runPolicy={"activeDeadlineSeconds": 1})
    part = run_serially(limited, tmp_path / "run", looks=100)
    assert part.state == "Interrupted"
    assert 0 < part.time_s < 1
    outcome = run_serially(limited, tmp_path / "run", resume=True)
    assert (outcome.state, outcome.stop_reason, outcome.exit_code) == ("Failed", "deadline", 124)
    assert 1 <= outcome.time_s < 1.1


def test_a_run_directory_that_is_in_use_needs_resume(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    with pytest.raises(RunDirectoryUnusable, match="--resume"):
        run_serially(job(DQN), tmp_path / "run")


def test_a_finished_run_goes_on_when_its_criterion_is_raised(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 200}), tmp_path / "run")
    outcome = run_serially(job(DQN, stop={"envSteps": 400}), tmp_path / "run", resume=True)
    assert outcome.env_steps >= 400
    steps = [line["env_steps"] for line in results(tmp_path / "run")]
    assert steps == sorted(steps)


def test_another_plans_or_environments_checkpoint_is_refused(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    with pytest.raises(CheckpointMismatch, match=r"plan DQN .this run has DDPPO"):
        run_serially(job(DDPPO), tmp_path / "run", resume=True)
    with pytest.raises(CheckpointMismatch, match="env CartPole-v1"):
        run_serially(job(DQN, env={"id": "Acrobot-v1"}), tmp_path / "run", resume=True)


def test_a_checkpoint_of_another_network_is_refused_in_words(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 100}), tmp_path / "run")
    with pytest.raises(CheckpointMismatch):
        run_serially(job(DQN, config={"hiddens": [9]}), tmp_path / "run", resume=True)


def test_resume_from_starts_another_run_with_that_state(tmp_path: Path) -> None:
    first = run_serially(job(DQN, stop={"envSteps": 200}), tmp_path / "first")
    second = job(DQN, stop={"envSteps": 400}, checkpoint={"resumeFrom": str(tmp_path / "first")})
    run_serially(second, tmp_path / "second")
    resumed = next(line["resumed"] for line in results(tmp_path / "second") if "resumed" in line)
    assert resumed["env_steps"] == first.env_steps
    assert resumed["hashes"] == marker(first.checkpoint)["hashes"]


def test_a_checkpoint_without_replay_is_taken_up_with_an_empty_buffer_and_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {**DQN, "checkpoint": {**DQN["checkpoint"], "replay": False}}
    part = run_serially(job(spec), tmp_path / "run", looks=60)
    assert "replay.npz" not in marker(part.checkpoint)["files"]
    outcome = run_serially(job(spec), tmp_path / "run", resume=True)
    assert outcome.state == "Succeeded"
    assert "has no replay in it" in caplog.text


def test_a_checkpoint_with_replay_is_taken_up_without_it_where_none_is_to_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = run_serially(job(SAC), tmp_path / "run", looks=60)
    assert "replay.npz" in marker(part.checkpoint)["files"]
    outcome = run_serially(job(SAC, checkpoint={"replay": False}), tmp_path / "run", resume=True)
    assert outcome.state == "Succeeded"
    assert "has replay in it: starting with a new one" in caplog.text
    assert "replay.npz" not in marker(outcome.checkpoint)["files"]


def test_a_superseded_attempt_stops_before_it_writes(tmp_path: Path) -> None:
    class Overtaken(InterruptedAt):
        @property
        def asked(self) -> Any:
            self._left -= 1
            if self._left == 50:
                Attempts(tmp_path / "run" / "attempts", "the next pod")
            return None

        @asked.setter
        def asked(self, value: object) -> None: ...

    with pytest.raises(TrainingFailed, match="newer attempt"):
        run_locally(job(DQN), tmp_path / "run", resume=False, serial=True, interrupts=Overtaken(100))
    written = [path.name for path in (tmp_path / "run" / "checkpoints").glob("*")]
    assert all(int(name.split("-")[0]) < 900 for name in written)


def test_a_full_disk_is_told_and_the_save_is_tried_again_when_there_is_room(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filler = small_disk / "filler"

    class Cleaned(InterruptedAt):
        @property
        def asked(self) -> Any:
            self._left -= 1
            if self._left == 160:
                fill(filler)
            if self._left == 60:
                filler.unlink()
            return None

        @asked.setter
        def asked(self, value: object) -> None: ...

    outcome = run_locally(job(DQN), small_disk / "run", resume=False, serial=True, interrupts=Cleaned(200))
    assert "no room for a checkpoint" in caplog.text
    assert outcome.state == "Succeeded"
    assert marker(outcome.checkpoint)["env_steps"] == outcome.env_steps


def fill(path: Path) -> None:
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)
    except OSError:
        pass


def test_unknown_environment_and_unfit_space_are_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UnknownEnvironment, match="CartPole-v1"):
        run_serially(job(DQN, env={"id": "CartPoel-v1"}), tmp_path / "a")
    with pytest.raises(UnsupportedSpace, match="DDPPO"):
        run_serially(job(DQN, env={"id": "Pendulum-v1"}), tmp_path / "b")


WITH_WORKERS = pytest.mark.parametrize(
    "spec", [{**DQN, "rollouts": {"replicas": 2}}, DDPPO, APEX], ids=["DQN", "DDPPO", "Apex"]
)


@WITH_WORKERS
def test_a_worker_whose_environment_cannot_be_made_at_first_is_made_again(spec: dict[str, Any], tmp_path: Path) -> None:
    kwargs = {"folder": str(tmp_path), "worker": 2, "times": 1, "at": 0}
    env = {"id": "trainer.runtime.flaky:Flaky", "kwargs": kwargs}
    outcome = run_serially(job({**spec, "env": env}), tmp_path / "run")
    assert outcome.state == "Succeeded"
    counters = results(tmp_path / "run")[-1]["counters"]
    assert (counters["num_worker_failures"], counters["num_env_restarts"]) == (1, 0)
    wanted = spec["workers" if "workers" in spec else "rollouts"]["replicas"]
    assert results(tmp_path / "run")[-1]["num_healthy_workers"] == wanted


@WITH_WORKERS
def test_an_environment_that_throws_is_made_again_in_its_worker_and_training_goes_on(
    spec: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kwargs = {"kind": "raise", "step": 5, "worker": 2, "every": 3}
    env = {"id": "probes.envs:Bad", "kwargs": kwargs, "maxRestarts": 1000}
    outcome = run_serially(job({**spec, "env": env}), tmp_path / "run")
    assert outcome.state == "Succeeded"
    counters = results(tmp_path / "run")[-1]["counters"]
    assert counters["num_env_restarts"] == counters["num_episodes_dropped"] > 1
    assert counters["num_env_restarts/RuntimeError"] == counters["num_env_restarts"]
    assert "num_worker_failures" not in counters
    words = [each.message for each in caplog.records if "failed in worker 2, environment" in each.message]
    assert len(words) == 1, "each kind is warned of once"
    assert "step 4 of its episode" in words[0]
    assert "RuntimeError: this probe raises. It was made again" in words[0]


LOCAL_AND_WORKERS = pytest.mark.parametrize(
    "spec", [DQN, {**DQN, "rollouts": {"replicas": 1}}, DDPPO], ids=["local", "DQN", "DDPPO"]
)


@LOCAL_AND_WORKERS
def test_an_environment_that_always_throws_ends_the_run_with_its_own_words(
    spec: dict[str, Any], tmp_path: Path
) -> None:
    env = {"id": "trainer.runtime.flaky:Flaky", "kwargs": {"folder": str(tmp_path), "times": 1000}, "maxRestarts": 5}
    words = r"failed in worker \d, environment [01], step 4 of its episode .* the game crashed; .* failed 6 times"
    with pytest.raises(EnvironmentFailed, match=words) as failed:
        run_serially(job({**spec, "env": env}), tmp_path / "run")
    assert failed.value.reason == "EnvironmentFailed"
    # No worker is made again for what another one's environments wouldn't do better.
    assert (tmp_path / "crashes").stat().st_size <= 12


@pytest.mark.parametrize(("intensity", "replicas"), [(0.5, 0), (0.5, 3), (1, 1), (4, 0), (4, 3)])
def test_trained_to_sampled_steps_are_within_2_percent_of_the_intensity(
    intensity: float, replicas: int, tmp_path: Path
) -> None:
    spec = job(DQN, config={"training_intensity": intensity}, rollouts={"replicas": replicas}, stop={"envSteps": 2000})
    outcome = run_serially(spec, tmp_path / "run")
    warm = 100  # learning_starts: nothing is earned before
    fragment = 8 * max(1, replicas)
    earned = (outcome.env_steps - warm) * intensity
    assert abs(outcome.trained_steps - earned) <= 0.02 * earned + fragment * intensity + 16


TWO_AND_ALL_APART = {**APEX, "rollouts": {"replicas": 2}, "learners": {"replicas": 1}}
"""Two workers, two shards and a learner, made in this order."""


@pytest.mark.parametrize("every", [0.001, 1000], ids=["while it is saved", "while it is pulled"])
@pytest.mark.parametrize(
    ("spec", "victim", "made"),
    [
        ({**DQN, "rollouts": {"replicas": 2}}, 0, [1, 2, 1]),
        (DDPPO, 0, [1, 2, 1, 2]),
        (TWO_AND_ALL_APART, 0, [1, 2, 1, 2, 1, 1]),
        (TWO_AND_ALL_APART, 3, [1, 2, 1, 2, 1, 2]),
        (TWO_AND_ALL_APART, 4, [1, 2, 1, 2, 1, 1]),
        ({**TWO_AND_ALL_APART, "learners": {"replicas": 2}}, 5, [1, 2, 1, 2, 1, 2, 1, 2]),
    ],
    ids=["DQN", "DDPPO", "Ape-X's worker", "Ape-X's shard", "Ape-X's learner", "one of Ape-X's learners"],
)
def test_an_actor_lost_at_any_moment_is_made_again_and_training_goes_on(
    spec: dict[str, Any], victim: int, made: list[int], every: float, tmp_path: Path
) -> None:
    class Recording(SerialBackend):
        def __init__(self) -> None:
            super().__init__()
            self.made: list[Actor] = []

        def create(self, factory: Callable[[], Any], *, role: str, index: int, slotless: bool = False) -> Actor:
            self.made.append(super().create(factory, role=role, index=index, slotless=slotless))
            return self.made[-1]

    backend = Recording()

    class Killing(InterruptedAt):
        @property
        def asked(self) -> Any:
            self._left -= 1
            if self._left == 0:
                backend.kill(backend.made[victim])
            return None

        @asked.setter
        def asked(self, value: object) -> None: ...

    manifest = job(spec, checkpoint={"everySeconds": every})
    directory = RunDirectory(tmp_path / "run")
    directory.open()
    observers = Observers([ResultsFile(directory.results, None)])
    attempt = Attempts(directory.attempts, "test")
    outcome = Driver(manifest, directory, backend, observers, Killing(6), attempt, None).run()
    assert outcome.state == "Succeeded"
    assert [actor.index for actor in backend.made] == made
    assert results(tmp_path / "run")[-1]["num_healthy_workers"] == 2
