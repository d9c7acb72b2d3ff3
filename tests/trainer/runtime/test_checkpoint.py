"""A checkpoint is there as a whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import CheckpointMismatch, CheckpointUnusable, InvalidInput, StorageFull
from rltrain.runtime.attempts import Attempts
from rltrain.runtime.checkpoint import Checkpoint, Identity, Summary, require_same
from rltrain.runtime.checkpoint_store import Best, CheckpointStore, find_checkpoint

IDENTITY = Identity("DQN", "CartPole-v1", "Box(4,)", "Discrete(2)")


def summary(env_steps: int, attempt: int = 1) -> Summary:
    return Summary(env_steps, 0, 0, None, 0.0, attempt, {}, {})


def save(store: CheckpointStore, env_steps: int, **parts: Any) -> Checkpoint:
    return store.save(IDENTITY, summary(env_steps), parts or {"policy": {"w": np.arange(env_steps % 7 + 1)}})


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", keep=3)


def folders(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "checkpoints").iterdir())


def test_the_best_one_stays_beside_the_newest_until_another_is_marked(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints", keep=1)
    assert store.best() is None
    second = [save(store, step) for step in (1, 2)][-1]
    best = Best(second.path, "evaluation", 7.5)
    store.mark_best(best)
    assert folders(tmp_path) == [second.path.name, "best.json"]
    for step in (3, 4, 5):
        save(store, step)
    assert store.best() == best
    assert find_checkpoint(tmp_path, best=True).path == second.path
    newest = find_checkpoint(tmp_path)
    assert folders(tmp_path) == [second.path.name, newest.path.name, "best.json"]
    store.mark_best(Best(newest.path, "evaluation", 8.0))
    store.prune()
    assert folders(tmp_path) == [newest.path.name, "best.json"]


def test_a_spared_one_stays_for_once(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints", keep=1)
    spared = save(store, 1)
    newest = store.save(IDENTITY, summary(2), {"policy": {}}, spared)
    assert folders(tmp_path) == [spared.path.name, newest.path.name]
    save(store, 3)
    assert folders(tmp_path) == ["000000000003-0001"]


def test_what_was_learnt_since_the_same_env_step_is_saved_too_and_is_newer(store: CheckpointStore) -> None:
    def learnt(trained_steps: int) -> Checkpoint:
        state = {"policy": {"w": np.array(trained_steps)}}
        return store.save(IDENTITY, replace(summary(7), trained_steps=trained_steps), state)

    first, second, third = learnt(32), learnt(64), learnt(96)
    assert [learnt(steps).path for steps in (32, 64, 96)] == [first.path, second.path, third.path]
    newest = store.newest()
    assert newest is not None
    assert newest.path == third.path
    policy = newest.read("policy")
    assert policy is not None
    assert policy["w"] == 96
    another = save(store, 8)
    assert sorted(folders(store._folder.parent)) == sorted(each.path.name for each in (second, third, another))


@pytest.mark.parametrize(
    "marked",
    [
        "",
        "[]",
        '{"checkpoint": "../../etc", "metric": "evaluation", "return_mean": 1}',
        '{"checkpoint": "000000000009-0001", "metric": "evaluation", "return_mean": 1}',
        '{"checkpoint": "000000000001-0001", "metric": "evaluation", "return_mean": "much"}',
    ],
)
def test_a_mark_that_leads_nowhere_is_none(marked: str, store: CheckpointStore, tmp_path: Path) -> None:
    save(store, 1)
    (tmp_path / "checkpoints" / "best.json").write_text(marked)
    assert store.best() is None
    with pytest.raises(InvalidInput, match=r"spec\.checkpoint\.keepBest: true"):
        find_checkpoint(tmp_path, best=True)


def test_every_kind_of_node_comes_back_as_it_was(store: CheckpointStore) -> None:
    state = {
        "floats": np.array([[1.5, np.nan], [np.inf, -0.0]], np.float32),
        "scalar": np.array(3, np.int64),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 4), np.uint8),
        "nested": {"list": [1, 2.5, "x", None, True, {"deep": np.arange(3)}], "big": 1 << 100},
    }
    save(store, 1, policy=state)
    read = store.newest().read("policy")  # type: ignore[union-attr]
    assert read is not None
    for name in ("floats", "scalar", "flags", "empty"):
        np.testing.assert_array_equal(read[name], state[name])
        assert read[name].dtype == state[name].dtype  # type: ignore[attr-defined]
    np.testing.assert_array_equal(read["nested"]["list"].pop()["deep"], np.arange(3))
    assert read["nested"] == {"list": [1, 2.5, "x", None, True], "big": 1 << 100}


@pytest.mark.parametrize("node", [np.array([object()]), {1: 2}, {"__array__": "x"}, b"bytes", object()])
def test_what_could_not_be_read_back_is_refused_when_saved(store: CheckpointStore, node: Any) -> None:
    with pytest.raises(TypeError, match="policy/node"):
        save(store, 1, policy={"node": node})
    assert store.newest() is None


def test_only_the_newest_are_kept(store: CheckpointStore, tmp_path: Path) -> None:
    for env_steps in (10, 20, 30, 40, 1_000_000_000):
        save(store, env_steps)
    assert folders(tmp_path) == ["000000000030-0001", "000000000040-0001", "001000000000-0001"]
    assert store.newest().summary.env_steps == 1_000_000_000  # type: ignore[union-attr]


def damage_byte(folder: Path) -> None:
    data = bytearray((folder / "policy.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "policy.npz").write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped byte": damage_byte,
    "a cut file": lambda folder: os.truncate(folder / "policy.npz", 10),
    "a missing part": lambda folder: (folder / "policy.json").unlink(),
    "no marker": lambda folder: (folder / "checkpoint.json").unlink(),
    "half a marker": lambda folder: os.truncate(folder / "checkpoint.json", 40),
    "another format": lambda folder: (folder / "checkpoint.json").write_text('{"format": 99}'),
    "a marker that is a list": lambda folder: (folder / "checkpoint.json").write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_broken_one_is_skipped_with_a_sentence_and_an_older_whole_one_used(
    store: CheckpointStore, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, 10)
    save(store, 20)
    DAMAGE[damage](tmp_path / "checkpoints" / "000000000020-0001")
    assert store.newest().summary.env_steps == 10  # type: ignore[union-attr]
    assert "000000000020-0001 is broken" in caplog.text
    assert "using the older checkpoint 000000000010-0001" in caplog.text


def test_only_broken_ones_is_an_error_that_says_what_to_do(store: CheckpointStore, tmp_path: Path) -> None:
    save(store, 10)
    damage_byte(tmp_path / "checkpoints" / "000000000010-0001")
    with pytest.raises(CheckpointUnusable, match=r"hash of policy\.npz differs.*Restore one from a copy"):
        store.newest()


def test_pickled_objects_in_a_forged_checkpoint_are_not_unpickled(store: CheckpointStore, tmp_path: Path) -> None:
    checkpoint = save(store, 10)
    array = np.array([{"a": 1}], dtype=object)
    with zipfile.ZipFile(checkpoint.path / "policy.npz", "w") as archive, archive.open("0.npy", "w") as member:
        np.lib.format.write_array(member, array, allow_pickle=True)
    with pytest.raises(CheckpointUnusable, match="allow_pickle"):
        checkpoint.read("policy")


def test_marker_may_not_name_files_elsewhere(store: CheckpointStore, tmp_path: Path) -> None:
    checkpoint = save(store, 10)
    path = checkpoint.path / "checkpoint.json"
    forged = json.loads(path.read_text())
    forged["files"]["../../secret.json"] = {"size": 1, "sha256": ""}
    path.write_text(json.dumps(forged))
    with pytest.raises(CheckpointUnusable):
        store.newest()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"plan": "DDPPO"}, "plan DDPPO"),
        ({"env": "Acrobot-v1"}, "env Acrobot-v1"),
        ({"action_space": "Discrete(3)"}, r"action space Discrete\(3\)"),
    ],
)
def test_foreign_checkpoint_is_refused_with_what_differs(
    store: CheckpointStore, changed: dict[str, str], told: str
) -> None:
    checkpoint = store.save(replace(IDENTITY, **changed), summary(1), {"policy": {}})
    with pytest.raises(CheckpointMismatch, match=f"it has {told} .this run has"):
        require_same(checkpoint, IDENTITY)


def test_checkpoint_is_found_by_its_own_path_and_by_its_run_directory(store: CheckpointStore, tmp_path: Path) -> None:
    checkpoint = save(store, 10)
    assert find_checkpoint(tmp_path).path == find_checkpoint(checkpoint.path).path == checkpoint.path
    with pytest.raises(CheckpointUnusable, match="give a run directory or"):
        find_checkpoint(tmp_path / "nothing")


def test_a_newer_attempt_supersedes_an_older_one(tmp_path: Path) -> None:
    first = Attempts(tmp_path / "attempts", "pod-a")
    assert (first.number, first.superseded) == (1, False)
    second = Attempts(tmp_path / "attempts", "pod-b")
    assert (second.number, first.superseded, second.superseded) == (2, True, False)


KILLED = """
import sys, numpy as np
from pathlib import Path
from trainer.runtime.test_checkpoint import save, CheckpointStore
store = CheckpointStore(Path(sys.argv[1]), keep=3)
for steps in range(10, 10_000_000, 10):
    save(store, steps, policy={"w": np.full(300_000, steps)})
    print(steps, flush=True)
"""


def test_sigkill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    for wait_for in (1, 2, 4):
        folder = tmp_path / str(wait_for)
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        done = [int(child.stdout.readline()) for _ in range(wait_for)][-1]
        # The next save has begun, or is about to.
        child.send_signal(signal.SIGKILL)
        child.wait()
        newest = CheckpointStore(folder).newest()
        assert newest is not None
        steps = newest.summary.env_steps
        assert steps >= done
        state = newest.read("policy")
        assert state is not None
        assert (state["w"] == steps).all()


def test_full_disk_is_told_and_the_last_whole_one_stays_until_there_is_room_again(small_disk: Path) -> None:
    store = CheckpointStore(small_disk / "checkpoints", keep=2)
    save(store, 10, policy={"w": np.zeros(250_000)})
    with pytest.raises(StorageFull, match=r"free some space, use a larger volume or lower checkpoint\.keep"):
        save(store, 20, policy={"w": np.zeros(500_000)})
    assert folders(small_disk) == ["000000000010-0001"], "nothing half-written is left"
    assert store.newest().summary.env_steps == 10  # type: ignore[union-attr]
    save(store, 30, policy={"w": np.zeros(250_000)})
    assert store.newest().summary.env_steps == 30  # type: ignore[union-attr]


def test_leftovers_of_a_crash_are_cleared_by_the_next_save(store: CheckpointStore, tmp_path: Path) -> None:
    leftover = tmp_path / "checkpoints" / ".saving-000000000005-0001"
    leftover.mkdir(parents=True)
    (leftover / "policy.npz").write_bytes(b"half")
    save(store, 10)
    assert folders(tmp_path) == ["000000000010-0001"]
