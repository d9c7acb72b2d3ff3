"""Datasets on disk: NumPy's .npz, and Minari. Nothing is ever unpickled."""

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from rltrain.api import names
from rltrain.api.errors import InvalidManifest, MissingExtra, Problem
from rltrain.models.agents import Roster
from rltrain.models.spaces import Space
from rltrain.offline.agents import AgentsDataset, prepare_agents
from rltrain.offline.dataset import BadDataset, Dataset, prepare
from rltrain.rollout import columns as c
from rltrain.state import Array

FIELD: Final = "spec.config.input"
_ALIASES: Final = {
    "observations": c.OBS,
    "next_observations": c.NEXT_OBS,
    "terminals": c.TERMINATEDS,
    "terminations": c.TERMINATEDS,
    "timeouts": c.TRUNCATEDS,
    "truncations": c.TRUNCATEDS,
}
"""Names of D4RL and Minari."""
_COLUMNS: Final = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.TERMINATEDS, c.TRUNCATEDS, c.EPS_ID, c.ENV_STEP)
_ALONE: Final = ""


def load_dataset(given: str, obs_space: Space, action_space: Space) -> Dataset:
    """Read and prepare a dataset.

    Args:
        given: as in the manifest (see `find`).

    Raises:
        InvalidManifest: there is none, it can't be read, or it doesn't fit the environment.
        MissingExtra: it is Minari's, and Minari isn't installed.
    """
    path = find(given)
    try:
        found = {_ALONE: _read_minari(path)} if path.is_dir() else _read_npz(path, [_ALONE])
        if found and _ALONE not in found:
            raise BadDataset(f"it holds the steps of several agents, {', '.join(found)}, and the environment has one")
        columns = found.get(_ALONE, {})
        if not len(columns.get(c.OBS, ())):
            raise BadDataset("it holds no transitions")
        return prepare(columns, obs_space, action_space)
    except BadDataset as error:
        raise _refused(f"{path}: {error}") from error


def load_agents(given: str, roster: Roster, *, by_step: bool) -> AgentsDataset:
    """Read and prepare a dataset of several agents; raises as `load_dataset` does.

    Args:
        by_step: see `prepare_agents`.
    """
    path = find(given)
    try:
        if path.is_dir():
            raise BadDataset("a Minari dataset holds the steps of one agent, and the environment has several")
        wanted = [agent for policy in roster.to_train for agent in roster.agents[policy]]
        found = _read_npz(path, wanted)
        if _ALONE in found:
            first = f"{wanted[0]}/{c.OBS}"
            raise BadDataset(f"it holds the steps of one agent: those of several have columns such as {first!r}")
        return prepare_agents(found, roster, by_step=by_step)
    except BadDataset as error:
        raise _refused(f"{path}: {error}") from error


def find(given: str) -> Path:
    """The file or folder, as given or, in a pod, below the job's code or volume. Raises InvalidManifest."""
    tried = [Path(given)]
    if "RLTRAIN_ROLE" in os.environ:
        roots = (names.CODE_PATH, os.environ.get("RLTRAIN_DATA", names.DATA_PATH))
        tried += [Path(root, given) for root in roots if not Path(given).is_absolute()]
    for path in tried:
        if path.exists():
            return path
    raise _refused(f"there is no {' and no '.join(map(str, tried))}")


def _refused(message: str) -> InvalidManifest:
    return InvalidManifest(
        [Problem(FIELD, message, "paths are seen from the working folder; rltrain collect writes a dataset")]
    )


def _read_npz(path: Path, agents: Sequence[str]) -> dict[str, dict[str, Array]]:
    """Columns of some agents, and the names of all that have any: before the last slash, of `agent/column`."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise BadDataset("it is a single array, not an .npz file with columns")
        with file:
            found: dict[str, dict[str, Array]] = {}
            for name in file.files:
                agent, _, given = name.rpartition("/")
                column = _ALIASES.get(given, given)
                if column in _COLUMNS:
                    its = found.setdefault(agent, {})
                    if agent in agents:
                        its[column] = file[name]
            return found
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise BadDataset(f"it can't be read as an .npz file of plain arrays: {error}") from error


def _read_minari(path: Path) -> dict[str, Array]:
    try:
        from minari import MinariDataset  # type: ignore[import-untyped]  # has no annotations

        data = path / "data" if (path / "data").is_dir() else path
        episodes = [dict(_episode(number, each)) for number, each in enumerate(MinariDataset(data).iterate_episodes())]
    except ModuleNotFoundError as error:
        raise MissingExtra(f"Minari datasets need {error.name}: pip install 'rltrain[offline]'") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadDataset(f"it can't be read as a Minari dataset: {error}") from error
    return {name: np.concatenate([each[name] for each in episodes]) for name in episodes[0]} if episodes else {}


def _episode(number: int, episode: Any) -> Iterator[tuple[str, Array]]:
    """Columns of an episode, which has one observation more than steps."""
    observations = episode.observations
    if isinstance(observations, Mapping | tuple):
        raise BadDataset("its observations are a dict or a tuple: flatten them first")
    steps = len(episode.rewards)
    yield c.OBS, observations[:steps]
    yield c.NEXT_OBS, observations[1 : steps + 1]
    yield c.ACTIONS, episode.actions
    yield c.REWARDS, episode.rewards
    yield c.TERMINATEDS, episode.terminations
    yield c.TRUNCATEDS, episode.truncations
    yield c.EPS_ID, np.full(steps, number)
