"""Recorded transitions made ready to learn from. Pure functions over columns in the order of recording."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rltrain.models.spaces import Space, stored_actions
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array


class BadDataset(Exception):
    """What is wrong with a dataset, as a sentence without its place."""


@dataclass(frozen=True)
class Summary:
    """What a dataset holds. An episode's end may be terminated, truncated, both, or unflagged."""

    transitions: int
    episodes: int
    terminated: int
    truncated: int
    unflagged: int
    return_mean: float

    def __str__(self) -> str:
        return (
            f"{self.transitions:,} transitions, {self.episodes:,} episodes (mean return {self.return_mean:.2f}): "
            f"{self.terminated:,} terminated, {self.truncated:,} truncated, {self.unflagged:,} unflagged"
        )


@dataclass(frozen=True)
class Dataset:
    """Transitions ready to learn from.

    Attributes:
        batch: OBS, ACTIONS (as policies number and scale them), REWARDS, NEXT_OBS, TERMINATEDS, TRUNCATEDS, and
            as ENV_ID the episode: what `Policy.postprocess` takes.
        warnings: sentences on what looks wrong.
    """

    batch: Batch
    summary: Summary
    warnings: tuple[str, ...]


def prepare(columns: Mapping[str, Array], obs_space: Space, action_space: Space) -> Dataset:
    """Check columns against an environment's spaces, find the episodes, and complete and normalise the rows.

    Args:
        columns: OBS, ACTIONS (the environment's), REWARDS and TERMINATEDS; TRUNCATEDS, NEXT_OBS and EPS_ID where the
            data has them.

    Raises:
        BadDataset: something is missing, of another shape, not finite or outside of its space.
    """
    obs = _observations(c.OBS, columns, obs_space)
    count = len(obs)
    rewards = _column(c.REWARDS, columns, count).reshape(count).astype(np.float32)
    _finite(c.REWARDS, rewards)
    terminateds = _flags(c.TERMINATEDS, columns, count)
    truncateds = _flags(c.TRUNCATEDS, columns, count) if c.TRUNCATEDS in columns else np.zeros(count, bool)
    given_next = _observations(c.NEXT_OBS, columns, obs_space) if c.NEXT_OBS in columns else None
    if given_next is not None and len(given_next) != count:
        raise BadDataset(f"{c.NEXT_OBS} has {len(given_next)} rows, {c.OBS} {count}")
    eps_id = _column(c.EPS_ID, columns, count).reshape(count) if c.EPS_ID in columns else None
    actions = _actions(_column(c.ACTIONS, columns, count), action_space)

    flagged = terminateds | truncateds
    breaks = episode_breaks(obs, given_next, eps_id)
    ends = flagged | breaks
    ends[-1:] = True
    batch = Batch(
        {
            c.OBS: obs,
            c.ACTIONS: actions,
            c.REWARDS: rewards,
            c.NEXT_OBS: shifted(obs, ends) if given_next is None else given_next,
            c.TERMINATEDS: terminateds,
            c.TRUNCATEDS: truncateds,
            c.ENV_ID: episode_numbers(ends),
        }
    )
    episodes = int(np.count_nonzero(ends))
    summary = Summary(
        transitions=count,
        episodes=episodes,
        terminated=int(np.count_nonzero(terminateds)),
        truncated=int(np.count_nonzero(truncateds)),
        unflagged=int(np.count_nonzero(ends & ~flagged)),
        return_mean=float(rewards.sum(dtype=np.float64)) / max(episodes, 1),
    )
    return Dataset(batch, summary, tuple(_suspicions(flagged, breaks)))


def episode_breaks(obs: Array, next_obs: Array | None, eps_id: Array | None) -> Array:
    """Rows that the next row doesn't go on from, as far as the data shows it; bool (n,), False for the last row."""
    breaks = np.zeros(len(obs), bool)
    if eps_id is not None:
        breaks[:-1] |= eps_id[1:] != eps_id[:-1]
    if next_obs is not None and len(obs):
        same = np.isclose(next_obs[:-1], obs[1:], rtol=1e-4, atol=1e-6)
        breaks[:-1] |= ~same.all(axis=tuple(range(1, same.ndim)))
    return breaks


def shifted(obs: Array, ends: Array) -> Array:
    """Next observations (n, *shape) of data that has none: the next row's.

    An episode's last row has no next row of its own: it gets its own observation, the nearest there is to what came
    after it, and never another episode's. Where it terminated nothing is bootstrapped from it anyway.
    """
    following = np.arange(len(obs)) + ~ends
    moved: Array = obs[following]
    return moved


def episode_numbers(ends: Array) -> Array:
    """The episode of each row, int64 (n,), from where episodes end."""
    numbers = np.zeros(len(ends), np.int64)
    numbers[1:] = np.cumsum(ends[:-1])
    return numbers


def _suspicions(flagged: Array, breaks: Array) -> list[str]:
    """Flags that stand beside the rows where the observations show that an episode ended."""
    if not breaks.any() or not (flagged[:-1] & ~breaks[:-1]).any():
        return []
    for step, where in ((1, "after"), (-1, "before")):
        moved = np.roll(breaks, step)
        if np.count_nonzero(moved & flagged) > 0.5 * np.count_nonzero(breaks) and not (breaks & flagged).any():
            row = int(np.flatnonzero(breaks)[0])
            return [
                f"the flags look shifted by one row: row {row} ends an episode, since row {row + 1} doesn't go on from "
                f"it, but its flag stands in the row {where} it"
            ]
    return []


def _column(name: str, columns: Mapping[str, Array], count: int) -> Array:
    if name not in columns:
        raise BadDataset(f"it has no column {name!r}, only {', '.join(sorted(columns)) or 'none'}")
    column = columns[name]
    if len(column) != count:
        raise BadDataset(f"{name} has {len(column)} rows, {c.OBS} {count}")
    return column


def _flags(name: str, columns: Mapping[str, Array], count: int) -> Array:
    column = _column(name, columns, count).reshape(count)
    if column.dtype != bool and not np.isin(column, (0, 1)).all():
        raise BadDataset(f"{name} must be true or false, or 1 or 0")
    return column.astype(bool)


def _observations(name: str, columns: Mapping[str, Array], space: Space) -> Array:
    column = _column(name, columns, len(columns.get(name, ())))
    shape = space.shape or ()
    if column.shape[1:] != shape:
        raise BadDataset(f"{name} has the shape {column.shape[1:]} a row, the environment's observations {shape}")
    if not np.can_cast(column.dtype, np.float64) and not np.can_cast(column.dtype, np.int64):
        raise BadDataset(f"{name} holds {column.dtype}, not numbers")
    if np.issubdtype(column.dtype, np.floating):
        _finite(name, column)
    return column.astype(space.dtype)


def _finite(name: str, column: Array) -> None:
    finite = np.isfinite(column).reshape(len(column), -1).all(axis=1)
    if not finite.all():
        raise BadDataset(f"{name} isn't finite in row {int(np.argmin(finite))}")


def _actions(column: Array, space: Space) -> Array:
    shape: Any = space.shape or ()
    if column.shape[1:] != shape:
        raise BadDataset(f"{c.ACTIONS} has the shape {column.shape[1:]} a row, the environment's actions {shape}")
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
        slack = 1e-4 * np.where(np.isfinite(high - low), high - low, 0)
        outside = ((column < low - slack) | (column > high + slack) | ~np.isfinite(column)).reshape(len(column), -1)
        if outside.any():
            row = int(np.argmax(outside.any(axis=1)))
            raise BadDataset(
                f"{c.ACTIONS} in row {row} is {column[row].tolist()}, outside of the environment's {space}: "
                "the file must hold actions as the environment takes them"
            )
    return stored_actions(space, column)
