"""`rltrain evaluate` takes what a run has left, tells what it can't take, and says the same each time."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from probes.envs import Const
from rltrain.cli.main import _run
from trainer.runtime.runs import DQN, job, run_serially

Evaluate = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    run_serially(job(DQN, stop={"envSteps": 200}), folder)
    return folder


@pytest.fixture
def evaluate(capsys: pytest.CaptureFixture[str]) -> Evaluate:
    def of(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        code = _run(["evaluate", *map(str, arguments)])
        return code, *capsys.readouterr()

    return of


def test_scores_are_the_same_each_time_and_for_the_run_and_its_checkpoint(evaluate: Evaluate, trained: Path) -> None:
    (checkpoint,) = (trained / "checkpoints").iterdir()
    said = [evaluate(path, "--episodes", "20", "-o", "json") for path in (trained, trained, checkpoint)]
    assert [code for code, _, _ in said] == [0, 0, 0]
    assert said[0][1] == said[1][1] == said[2][1]
    scores = json.loads(said[0][1])
    assert scores["episode_return_min"] <= scores["episode_return_mean"] <= scores["episode_return_max"]
    assert scores["episodes"] == 20
    assert evaluate(trained, "--episodes", "20", "--json") == said[0]
    assert json.loads(evaluate(trained, "--episodes", "20", "-o", "json", "--seed", "1")[1]) != scores


def test_one_episode_is_one(evaluate: Evaluate, trained: Path) -> None:
    assert " over 1 episode of CartPole-v1 " in evaluate(trained, "--episodes", "1")[1]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("one/manifest.yaml", r"manifest.yaml is a file (did you mean {run}?)"),
        ("one/checkpoints", r"checkpoints holds no run and is no checkpoint (did you mean {run}?)"),
        (".", r" holds no run and is no checkpoint (did you mean {run}?)"),
        ("one/manifest.yaml/x", "there is no "),
        ("nowhere", "there is no "),
        ("n" * 300, "can't read "),
    ],
)
def test_what_is_neither_run_nor_checkpoint_is_invalid_input(
    evaluate: Evaluate, trained: Path, path: str, words: str
) -> None:
    code, out, err = evaluate(trained.parent / path)
    assert (code, out) == (2, "")
    assert words.format(run=trained) in err
    assert len(err.splitlines()) == 1


def test_folder_and_file_with_no_run_near_are_invalid_input(evaluate: Evaluate, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# no run")
    for path in (tmp_path, tmp_path / "README.md"):
        code, _, err = evaluate(path)
        assert code == 2
        assert "give a run directory, or one of its checkpoints" in err
        assert "did you mean" not in err


def test_run_without_a_checkpoint_says_when_there_will_be_one(evaluate: Evaluate, tmp_path: Path) -> None:
    (tmp_path / "attempts").mkdir()
    code, _, err = evaluate(tmp_path)
    assert code == 1
    assert f"no checkpoint yet in {tmp_path}: " in err
    assert "spec.checkpoint.everySeconds" in err


def test_checkpoint_that_lost_its_marker_is_broken_and_not_unknown(
    evaluate: Evaluate, trained: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "checkpoints" / "000000000200-0001"
    broken.mkdir(parents=True)
    code, _, err = evaluate(broken)
    assert code == 1
    assert "checkpoint.json is missing" in err


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_the_first_episode_is_filmed_and_the_scores_stay_what_they_are(
    evaluate: Evaluate, trained: Path, tmp_path: Path, suffix: str
) -> None:
    import imageio.v3 as iio

    film = tmp_path / f"film{suffix}"
    film.write_bytes(b"an older one")
    plain = evaluate(trained, "--episodes", "3", "--json")
    assert evaluate(trained, "--episodes", "3", "--video", film, "--json") == plain
    alone = json.loads(evaluate(trained, "--episodes", "1", "--json")[1])
    frames = iio.imread(film)
    shown = alone["episode_length_mean"] + 1  # its beginning, and what came of each step
    if suffix == ".gif":  # which shows frames that are alike as one, for longer
        with Image.open(film) as gif:
            assert sum(frame.info["duration"] for frame in ImageSequence.Iterator(gif)) == shown * 20
    else:
        assert len(frames) == shown
    assert frames.shape[1:] == (400, 600, 3)
    assert len({frame.tobytes() for frame in frames}) > len(frames) // 2
    assert [path.name for path in tmp_path.iterdir()] == [film.name]


def test_several_agents_are_filmed_together_and_play_as_they_do_unseen(evaluate: Evaluate, tmp_path: Path) -> None:
    lives = {"stays": [[0, 6]], "comes": [[3, 3]]}
    run_serially(job(DQN, env={"id": "probes.agents:Seen", "kwargs": {"lives": lives}}), tmp_path / "run")
    plain = evaluate(tmp_path / "run", "--episodes", "3", "--json")
    film = tmp_path / "film.gif"
    assert evaluate(tmp_path / "run", "--episodes", "3", "--video", film, "--json") == plain
    with Image.open(film) as gif:
        shades = [np.asarray(frame.convert("L")).mean() for frame in ImageSequence.Iterator(gif)]
        assert gif.size == (48, 32)
        assert gif.info["duration"] == 50
    assert shades == pytest.approx([40 * step for step in range(7)], abs=2), "its beginning, and each of 6 steps"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("film.avi", "is no video: its name must end in .mp4 or .gif"),
        ("nowhere/film.mp4", "can't be written: No such file or directory"),
        ("folder.gif", "can't be written: it is a folder"),
    ],
)
def test_a_film_that_cannot_be_written_is_told_before_anything_is_played(
    evaluate: Evaluate, tmp_path: Path, file: str, words: str
) -> None:
    (tmp_path / "folder.gif").mkdir()
    code, out, err = evaluate("no-run", "--video", tmp_path / file)
    assert (code, out) == (2, "")
    assert words in err


def test_a_film_needs_its_extra(evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    code, _, err = evaluate("no-run", "--video", tmp_path / "film.mp4")
    assert code == 2
    assert "videos need imageio_ffmpeg, which isn't installed: pip install 'rltrain[video]'" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("env", "kwargs", "words"),
    [
        ("probes.envs:Const", {}, "takes no render_mode"),
        ("trainer.cli.test_evaluate:Blind", {}, "render() gives no image"),
        ("probes.agents:Tell", {}, "takes no render_mode"),
        ("probes.agents:Seen", {"lives": {"stays": [[0, 6]]}, "blind": True}, "render() gives no image"),
    ],
)
def test_an_environment_that_cannot_be_filmed_says_so(
    evaluate: Evaluate, tmp_path: Path, env: str, kwargs: dict[str, Any], words: str
) -> None:
    run_serially(job(DQN, env={"id": env, "kwargs": kwargs}, stop={"envSteps": 20}), tmp_path / "run")
    code, out, err = evaluate(tmp_path / "run", "--video", tmp_path / "film.mp4")
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "film.mp4").exists()


class Blind(Const):
    """Takes a render mode, and shows nothing."""

    def __init__(self, render_mode: str | None = None) -> None: ...

    def render(self) -> None: ...
