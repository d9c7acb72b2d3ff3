"""The CQL plan: learns from its dataset alone, counts trained steps, and refuses what it could never learn from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import InvalidManifest, UnsupportedSpace
from rltrain.flow import PROGRESS, MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.rollout import columns as c
from rltrain.runtime.build import Training
from trainer.runtime.runs import CQL, job, marker, run_serially


def test_it_trains_on_the_dataset_and_updates_targets_and_reports_by_trained_steps() -> None:
    metrics = MetricsContext()
    with metrics.active():
        built = Training(
            job(CQL, config={"timesteps_per_iteration": 48, "evaluation_interval": 0}), SerialBackend(), metrics
        )
        table = []
        for _ in range(7):
            item = built.flow.pull()
            assert item is PROGRESS or not isinstance(item, Signal)
            counters = metrics.counters
            table.append((counters[STEPS_TRAINED], counters["num_target_updates"], item is not PROGRESS))
        assert metrics.counters[STEPS_SAMPLED] == 0
        assert built.context.replay is not None
        assert len(built.context.replay) == 20_000
        assert np.abs(built.context.replay.get_state()["columns"][c.ACTIONS]).max() <= 1
    assert table == [
        (16, 0, False),
        (32, 1, False),
        (48, 1, True),
        (64, 2, False),
        (80, 2, False),
        (96, 3, True),
        (112, 3, False),
    ]


def test_it_ends_by_trained_steps_and_tells_of_its_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_serially(job(CQL), tmp_path / "run")
    assert (outcome.stop_reason, outcome.env_steps, outcome.trained_steps) == ("trained_steps", 0, 1600)
    assert "20,000 transitions, 100 episodes" in capsys.readouterr().err
    assert Path(str(outcome.checkpoint)).name == "000000001600-0001"
    assert marker(outcome.checkpoint)["trained_steps"] == 1600


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"buffer_size": 19999},
            "buffer_size: is 19999, but the dataset has 20000 transitions .set it to 20000 or more",
        ),
        (
            {"train_batch_size": 20001, "buffer_size": 21000},
            "train_batch_size: is 20001, but the dataset has only 20000",
        ),
        ({"input": "nowhere.npz"}, "input: there is no nowhere.npz"),
    ],
)
def test_what_it_could_never_learn_from_is_refused_before_training(
    config: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidManifest, match=words):
        run_serially(job(CQL, config=config), tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_an_empty_dataset_is_refused_before_training(tmp_path: Path) -> None:
    with np.load(CQL["config"]["input"]) as file:
        empty = {name: file[name][:0] for name in file.files}
    np.savez(tmp_path / "empty.npz", **empty)
    with pytest.raises(InvalidManifest, match="holds no transitions"):
        run_serially(job(CQL, config={"input": str(tmp_path / "empty.npz")}), tmp_path / "run")


def test_discrete_actions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSpace, match="plan CQL can't take the action space"):
        run_serially(job(CQL, env={"id": "CartPole-v1"}), tmp_path / "run")
