"""Recorded transitions: episodes found, flags counted and doubted, rows completed and normalised."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from probes.envs import SPACES
from rltrain.models.spaces import action_mapping, stored_actions
from rltrain.offline.dataset import BadDataset, prepare
from rltrain.rollout import columns as c
from rltrain.state import Array

OBS = spaces.Box(-np.inf, np.inf, (2,), np.float32)
PENDULUM = spaces.Box(-2.0, 2.0, (1,), np.float32)
LENGTHS = (5, 5, 4)
ENDS = np.array([4, 9, 13])


def recorded(with_next: bool = True, flagged: Array = ENDS, truncated: tuple[int, ...] = (9,)) -> dict[str, Array]:
    """Three episodes, their observations [episode, t]."""
    obs = np.array([[episode, t] for episode, length in enumerate(LENGTHS) for t in range(length)], np.float32)
    flags = np.zeros((2, 14), bool)
    for row in flagged:
        flags[int(row in truncated), row] = True
    columns = {
        c.OBS: obs,
        c.ACTIONS: np.linspace(-2, 2, 14, dtype=np.float32)[:, None],
        c.REWARDS: np.ones(14),
        c.TERMINATEDS: flags[0],
        c.TRUNCATEDS: flags[1],
    }
    return columns | ({c.NEXT_OBS: obs + np.array([0, 1], np.float32)} if with_next else {})


def prepared(columns: dict[str, Array], obs: Any = OBS, act: Any = PENDULUM) -> Any:
    return prepare(columns, obs, act)


@pytest.mark.parametrize("with_next", [True, False])
def test_episodes_and_their_ends_are_counted(with_next: bool) -> None:
    found = prepared(recorded(with_next))
    assert str(found.summary) == (
        "14 transitions, 3 episodes (mean return 4.67): 2 terminated, 1 truncated, 0 unflagged"
    )
    assert found.warnings == ()
    assert found.batch[c.ENV_ID].tolist() == [0] * 5 + [1] * 5 + [2] * 4


@pytest.mark.parametrize("with_next", [True, False])
def test_an_unflagged_last_row_is_kept_and_isn_t_terminal(with_next: bool) -> None:
    found = prepared(recorded(with_next, flagged=ENDS[:2]))
    assert (found.batch.count, found.summary.episodes, found.summary.unflagged) == (14, 3, 1)
    assert not found.batch[c.TERMINATEDS][13]


def test_both_flags_on_one_row_are_one_end_that_terminates() -> None:
    columns = recorded()
    columns[c.TERMINATEDS][9] = True
    found = prepared(columns)
    assert (found.summary.episodes, found.summary.terminated, found.summary.truncated) == (3, 3, 1)
    assert found.batch[c.TERMINATEDS][9]


@pytest.mark.parametrize(("shift", "where"), [(1, "after"), (-1, "before")])
def test_flags_shifted_by_one_are_told_with_a_row(shift: int, where: str) -> None:
    shifted = np.clip(ENDS + shift, 0, 13)
    found = prepared(recorded(flagged=shifted, truncated=()))
    (warning,) = found.warnings
    assert "shifted by one" in warning
    assert "row 4 ends an episode" in warning
    assert f"in the row {where} it" in warning


def test_without_next_observations_rows_get_the_next_row_s_and_never_another_episode_s() -> None:
    found = prepared(recorded(with_next=False))
    next_obs = found.batch[c.NEXT_OBS]
    goes_on = np.setdiff1d(np.arange(14), ENDS)
    np.testing.assert_array_equal(next_obs[goes_on], found.batch[c.OBS][goes_on + 1])
    np.testing.assert_array_equal(next_obs[ENDS], found.batch[c.OBS][ENDS])
    assert found.batch[c.TERMINATEDS].tolist() == [row in (4, 13) for row in range(14)], "only where it was"


def test_episode_numbers_in_the_data_part_what_no_flag_does() -> None:
    columns = recorded(with_next=False, flagged=ENDS[:0]) | {c.EPS_ID: np.repeat([7, 3, 7], LENGTHS)}
    found = prepared(columns)
    assert (found.summary.episodes, found.summary.unflagged) == (3, 3)
    np.testing.assert_array_equal(found.batch[c.NEXT_OBS][ENDS], found.batch[c.OBS][ENDS])


def test_given_next_observations_are_taken_as_they_are() -> None:
    found = prepared(recorded())
    np.testing.assert_array_equal(found.batch[c.NEXT_OBS], found.batch[c.OBS] + np.array([0, 1]))


@pytest.mark.parametrize(
    "space",
    [PENDULUM, SPACES["skewed box"], SPACES["double box"], SPACES["integers"]],
    ids=["pendulum", "skewed", "double", "integers"],
)
def test_actions_come_to_lie_from_minus_1_to_1_whatever_the_bounds(space: spaces.Box) -> None:
    ends = np.stack([space.low, space.high, (space.low + space.high) / 2]).astype(space.dtype)
    stored = stored_actions(space, ends)
    assert stored.dtype == np.float32
    np.testing.assert_allclose(stored[:2], [[-1] * stored.shape[1], [1] * stored.shape[1]])
    np.testing.assert_allclose(action_mapping(space)(stored), ends, atol=1e-5)


@pytest.mark.parametrize("name", ["two", "from minus one", "multi", "multi from five", "multi 2d", "bits"])
def test_discrete_actions_are_numbered_from_0_and_back(name: str) -> None:
    space = SPACES[name]
    space.seed(1)
    drawn = np.stack([np.asarray(space.sample()) for _ in range(20)])
    stored = stored_actions(space, drawn)
    assert stored.min() >= 0
    np.testing.assert_array_equal(action_mapping(space)(stored), drawn)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_whatever_the_flags_no_row_s_next_observation_is_another_episode_s(lengths: list[int], data: Any) -> None:
    count = sum(lengths)
    obs = np.array([[episode, t] for episode, length in enumerate(lengths) for t in range(length)], np.float32)
    flags = np.array(data.draw(st.lists(st.sampled_from("-tcb"), min_size=count, max_size=count)))
    columns: dict[str, Array] = {
        c.OBS: obs,
        c.ACTIONS: np.zeros((count, 1), np.float32),
        c.REWARDS: np.zeros(count),
        c.TERMINATEDS: np.isin(flags, ["t", "b"]),
        c.TRUNCATEDS: np.isin(flags, ["c", "b"]),
        c.EPS_ID: obs[:, 0].astype(int),
    }
    found = prepared(columns)
    assert found.batch.count == count
    np.testing.assert_array_equal(found.batch[c.NEXT_OBS][:, 0], obs[:, 0])
    np.testing.assert_array_equal(found.batch[c.TERMINATEDS], columns[c.TERMINATEDS])
    assert found.summary.episodes >= len(lengths)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({c.REWARDS: None}, "no column 'rewards'"),
        ({c.TERMINATEDS: None}, "no column 'terminateds'"),
        ({c.REWARDS: np.ones(13)}, "rewards has 13 rows, obs 14"),
        ({c.NEXT_OBS: np.ones((13, 2), np.float32)}, "next_obs has 13 rows"),
        ({c.REWARDS: np.full(14, np.nan)}, "rewards isn't finite in row 0"),
        ({c.OBS: np.full((14, 2), np.inf)}, "obs isn't finite"),
        ({c.OBS: np.zeros((14, 3))}, "environment's observations"),
        ({c.OBS: np.full((14, 2), "a")}, "not numbers"),
        ({c.ACTIONS: np.zeros((14, 2))}, "environment's actions"),
        ({c.ACTIONS: np.full((14, 1), 2.5)}, "row 0 is .2.5., outside"),
        ({c.TERMINATEDS: np.full(14, 2)}, "true or false"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(change: dict[str, Any], words: str) -> None:
    columns = {name: column for name, column in (recorded() | change).items() if column is not None}
    with pytest.raises(BadDataset, match=words):
        prepared(columns)
