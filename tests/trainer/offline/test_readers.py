"""Files of transitions: read without unpickling, found where they lie, refused in words."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.errors import InvalidManifest
from rltrain.offline.readers import find, load_dataset
from rltrain.offline.writer import write_npz
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from trainer.offline.test_dataset import ENDS, OBS, PENDULUM, recorded


def saved(path: Path, columns: Mapping[str, Any]) -> str:
    np.savez(path, **columns)
    return str(path)


def test_a_written_file_reads_back(tmp_path: Path) -> None:
    batch = Batch({**recorded(), c.EPS_ID: np.repeat([0, 1, 2], (5, 5, 4))})
    write_npz(tmp_path / "new" / "data.npz", batch)
    found = load_dataset(str(tmp_path / "new" / "data.npz"), OBS, PENDULUM)
    assert found.summary.episodes == 3
    np.testing.assert_allclose(found.batch[c.ACTIONS], batch[c.ACTIONS] / 2)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data.npz"]


def test_names_of_other_formats_are_known(tmp_path: Path) -> None:
    columns = recorded()
    renamed = {
        "observations": columns[c.OBS],
        "next_observations": columns[c.NEXT_OBS],
        "actions": columns[c.ACTIONS],
        "rewards": columns[c.REWARDS],
        "terminals": columns[c.TERMINATEDS],
        "timeouts": columns[c.TRUNCATEDS],
        "infos": np.zeros(3),
    }
    saved(tmp_path / "d4rl.npz", renamed)
    assert load_dataset(str(tmp_path / "d4rl.npz"), OBS, PENDULUM).summary.truncated == 1


class Malicious:
    """Would leave a mark when unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self._mark,)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    objects = np.array([Malicious(mark)], dtype=object)
    path = saved(tmp_path / "data.npz", {**recorded(), c.OBS: objects})
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Malicious(mark)))
    for each in (path, str(tmp_path / "raw.npz")):
        with pytest.raises(InvalidManifest, match=r"spec.config.input.*plain arrays"):
            load_dataset(each, OBS, PENDULUM)
    assert not mark.exists()


def test_what_is_no_dataset_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no zip")
    np.save(tmp_path / "single.npy", np.zeros(3))
    empty = {name: column[:0] for name, column in recorded().items()}
    saved(tmp_path / "empty.npz", empty)
    np.savez(tmp_path / "nothing.npz")
    for name, words in [
        ("missing.npz", "there is no .*rltrain collect"),
        ("text.npz", "can't be read"),
        ("single.npy", "single array"),
        ("empty.npz", "holds no transitions"),
        ("nothing.npz", "holds no transitions"),
    ]:
        with pytest.raises(InvalidManifest, match=words):
            load_dataset(str(tmp_path / name), OBS, PENDULUM)


def test_in_a_pod_a_path_is_also_looked_for_on_the_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "volume").mkdir()
    saved(tmp_path / "volume" / "data.npz", recorded())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLTRAIN_DATA", str(tmp_path / "volume"))
    with pytest.raises(InvalidManifest):
        find("data.npz")
    monkeypatch.setenv("RLTRAIN_ROLE", "head")
    assert find("data.npz") == tmp_path / "volume" / "data.npz"


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_minari_datasets_are_read_as_files_are(tmp_path: Path) -> None:
    minari = pytest.importorskip("minari")
    from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]  # has no annotations

    columns = recorded()
    bounds = np.split(np.arange(14), ENDS[:-1] + 1)
    buffers = [
        EpisodeBuffer(
            observations=list(np.concatenate([columns[c.OBS][rows], columns[c.NEXT_OBS][rows[-1:]]])),
            actions=list(columns[c.ACTIONS][rows]),
            rewards=list(columns[c.REWARDS][rows]),
            terminations=list(columns[c.TERMINATEDS][rows] if number < 2 else np.zeros(len(rows), bool)),
            truncations=list(columns[c.TRUNCATEDS][rows]),
        )
        for number, rows in enumerate(bounds)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        minari.create_dataset_from_buffers(
            "probe/three-v0", buffers, observation_space=OBS, action_space=PENDULUM, description="three episodes"
        )
    found = load_dataset(str(tmp_path / "probe" / "three-v0"), OBS, PENDULUM)
    assert (found.summary.episodes, found.summary.terminated) == (3, 1)
    assert (found.summary.truncated, found.summary.unflagged) == (1, 1)
    np.testing.assert_array_equal(found.batch[c.NEXT_OBS], columns[c.NEXT_OBS])
