"""`rltrain collect`: datasets from trained agents and from chance."""

import sys
from pathlib import Path

import numpy as np
import pytest

from rltrain.api.env import EnvSpec
from rltrain.cli.entry import main
from rltrain.offline.readers import load_dataset
from rltrain.rollout import columns as c
from rltrain.rollout.environments import Space, make_env
from trainer.runtime.runs import DQN, SAC, job, run_serially


def run(*arguments: object) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["rltrain", "collect", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
    return int(str(exit_.value.code))


def spaces_of(env_id: str) -> tuple[Space, Space]:
    env = make_env(EnvSpec(id=env_id))
    return env.observation_space, env.action_space


def test_random_actions_become_a_dataset_of_whole_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--env", "Pendulum-v1", "--steps", 250, "--seed", 3, "--out", tmp_path / "random.npz") == 0
    assert "400 transitions, 2 episodes" in capsys.readouterr().out
    with np.load(tmp_path / "random.npz") as file:
        actions = file[c.ACTIONS]
    assert actions.min() < -1.9
    assert actions.max() > 1.9, "the environment's own units"
    found = load_dataset(str(tmp_path / "random.npz"), *spaces_of("Pendulum-v1"))
    assert (found.summary.truncated, found.summary.unflagged, found.warnings) == (2, 0, ())
    assert np.abs(found.batch[c.ACTIONS]).max() <= 1


def test_runs_are_played_in_turn_with_episodes_of_their_own(tmp_path: Path) -> None:
    for seed in (1, 2):
        run_serially(job(SAC, seed=seed, stop={"envSteps": 120}), tmp_path / f"run{seed}")
    runs = (tmp_path / "run1", tmp_path / "run2")
    for name in ("a.npz", "again.npz"):
        assert run(*runs, "--steps", 400, "--out", tmp_path / name) == 0
    with np.load(tmp_path / "a.npz") as first, np.load(tmp_path / "again.npz") as second:
        assert all((first[name] == second[name]).all() for name in first.files), "the same seed, the same data"
        ends = np.flatnonzero(first[c.TRUNCATEDS])
        assert ends.tolist() == [199, 399]
        assert len(np.unique(first[c.EPS_ID])) == 2
        assert (first[c.OBS][0] != first[c.OBS][200]).any()


def test_discrete_agents_are_recorded_too(tmp_path: Path) -> None:
    run_serially(job(DQN, stop={"envSteps": 120}), tmp_path / "run")
    assert run(tmp_path / "run", "--steps", 50, "--explore", "--out", tmp_path / "data.npz") == 0
    found = load_dataset(str(tmp_path / "data.npz"), *spaces_of("CartPole-v1"))
    assert found.summary.terminated == found.summary.episodes
    assert set(found.batch[c.ACTIONS]) == {0, 1}


def test_what_cannot_be_collected_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in [
        (["--out", tmp_path / "x.npz"], "give a run to play, or --env"),
        ([tmp_path / "none", "--out", tmp_path / "x.npz"], "there is no"),
        ([tmp_path, "--env", "Pendulum-v1", "--out", tmp_path / "x.npz"], "not both"),
        (["--env", "Pendulun-v1", "--out", tmp_path / "x.npz"], "Pendulum-v1"),
    ]:
        assert run(*arguments) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "x.npz").exists()
