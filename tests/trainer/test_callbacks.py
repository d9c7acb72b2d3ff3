"""The user's callbacks are called as often as they should be, with what happened, and are heard when they fail."""

import os
from pathlib import Path
from typing import Any

import pytest

from rltrain.api.errors import CallbackFailed, InvalidManifest
from rltrain.flow import MetricsContext, Signal
from rltrain.flow.ray_backend import RayBackend
from rltrain.runtime.build import Training
from trainer import callbacks_of_users as users
from trainer.runtime.runs import CQL, DDPPO, DQN, job, results, run_serially

MODULE = "trainer.callbacks_of_users"
TELLING = {"id": f"{MODULE}:Telling"}
COUNTING = {"callbacks": f"{MODULE}:Counting", "metrics_num_episodes_for_smoothing": 100_000}


def calling(name: str, **config: Any) -> dict[str, Any]:
    return {"callbacks": f"{MODULE}:{name}", **config}


@pytest.mark.parametrize(
    ("spec", "env", "workers"),
    [
        (DQN, TELLING, {0}),
        ({**DQN, "rollouts": {"replicas": 2}}, TELLING, {1, 2}),
        (DQN, {**TELLING, "vectorize": "Subprocess"}, {0}),
        (DDPPO, TELLING, {1, 2}),
    ],
    ids=["driver", "workers", "subprocesses", "ranks"],
)
def test_each_episode_is_told_once_where_it_was_sampled_and_its_metrics_are_reported(
    spec: dict[str, Any], env: dict[str, Any], workers: set[int], tmp_path: Path
) -> None:
    users.EPISODES.clear()
    run_serially(job(spec, env=env, config=COUNTING, stop={"envSteps": 300}), tmp_path / "run")
    last = results(tmp_path / "run")[-1]
    assert len(users.EPISODES) == last["episodes"] == last["episodes_told"] > 50
    assert {episode.worker for episode in users.EPISODES} == workers
    for episode in users.EPISODES:
        assert episode.return_ == episode.length == episode.info["planned"] == episode.info["step"]
    lengths = [episode.length for episode in users.EPISODES]
    assert last["custom_metrics"] == {
        "planned_mean": pytest.approx(sum(lengths) / len(lengths)),
        "planned_min": 1.0,
        "planned_max": 5.0,
        **dict.fromkeys(("process_mean", "process_min", "process_max"), pytest.approx(os.getpid())),
    }
    assert last["not_a_number"] is None


def test_a_resumed_run_goes_on_with_its_custom_metrics(tmp_path: Path) -> None:
    manifest = job(DQN, env=TELLING, config=COUNTING)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_serially(manifest, whole)
    run_serially(manifest, parts, looks=60)
    run_serially(manifest, parts, resume=True)
    assert results(parts)[-1]["custom_metrics"] == results(whole)[-1]["custom_metrics"]


def test_an_actors_episodes_are_told_in_its_process_and_only_their_metrics_leave_it(ray_backend: RayBackend) -> None:
    with MetricsContext().active() as metrics:
        training = Training(job(DQN, env=TELLING, config=COUNTING, rollouts={"replicas": 1}), ray_backend, metrics)
        item: Any = None
        while item is None or isinstance(item, Signal):
            item = training.flow.tick(1.0)
        assert metrics.custom["planned"]
        assert os.getpid() not in metrics.custom["process"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raising", r"callbacks 'trainer.callbacks_of_users:Raising': on_episode_end failed: KeyError: 'success'"),
        ("Odd", "on_episode_end failed: custom metric 'odd' must be a finite number, not nan"),
        ("Replacing", "on_train_result failed: a report's own values must stay"),
        ("Unwritable", "on_train_result failed: a report can hold numbers, text and such: Object of type object"),
    ],
)
@pytest.mark.parametrize("replicas", [0, 1])
def test_one_that_fails_ends_the_run_at_once_and_is_named_with_its_cause(
    name: str, words: str, replicas: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CallbackFailed, match=words):
        run_serially(job(DQN, config=calling(name), rollouts={"replicas": replicas}), tmp_path / "run")
    assert "made again" not in caplog.text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nowhere:Class", "callbacks: 'nowhere:Class' can't be loaded: No module named 'nowhere'"),
        (f"{MODULE}:Nobody", "has no attribute 'Nobody' .use \"package.module:Class\""),
        (f"{MODULE}:function", "is not a class"),
        (f"{MODULE}:Misspelt", "on_episode_ends of .* would never be called .*on_episode_end and on_train_result"),
        (f"{MODULE}:Elsewhere", "before_learn_on_batch of .*config.before_learn_on_batch names"),
    ],
)
def test_what_could_never_be_called_is_refused_before_anything_starts(
    reference: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidManifest, match=words):
        run_serially(job(DQN, config={"callbacks": reference}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_class_that_cannot_be_made_and_a_function_that_is_not_there_are_refused_too(tmp_path: Path) -> None:
    with pytest.raises(CallbackFailed, match="its constructor failed: TypeError"):
        run_serially(job(CQL, config=calling("NeedsMore")), tmp_path / "run")
    with pytest.raises(InvalidManifest, match="before_learn_on_batch: 'nowhere:f' can't be loaded"):
        run_serially(job(CQL, config={"before_learn_on_batch": "nowhere:f"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_example_in_the_documents_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = (Path(__file__).parents[2] / "docs/callbacks.md").read_text()
    (tmp_path / "my_callbacks.py").write_text(document.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    run_serially(job(DQN, config={"callbacks": "my_callbacks:Callbacks"}), tmp_path / "run")
    last = results(tmp_path / "run")[-1]
    assert last["custom_metrics"]["reward_a_step_mean"] == 1.0
    assert last["updates_a_step"] == last["trained_steps"] / last["env_steps"]
