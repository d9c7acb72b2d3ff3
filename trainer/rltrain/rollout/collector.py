"""Collector: steps environments with a policy and cuts the transitions into batches of an exact size."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.faults import Fault, FaultReport, Tolerance
from rltrain.rollout.vector import Infos, VectorEnvs
from rltrain.state import Array, State


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """A finished episode: the undiscounted sum of its rewards and its number of steps.

    Attributes:
        by_policy: of several agents, whose returns `return_` is the sum of: the mean of each policy's agents.
        info: of its last step; it stays where the episode was sampled.
        custom_metrics: the user's own, see `callbacks`.
    """

    return_: float
    length: int
    by_policy: Mapping[str, float] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    custom_metrics: Mapping[str, float] = field(default_factory=dict)


Act = Callable[[Array], tuple[Array, Array, dict[str, Array]]]
"""Observations (num_envs, *shape) -> the policy's actions, the environments' actions, more columns."""
Begin = Callable[[Array], None]
"""Told in which environments, bool (num_envs,), the next observation begins an episode."""


def never(steps: int) -> bool:
    """No number of steps is enough but the one asked for."""
    return False


class Occurrences:
    """What has happened in a worker's environments, for whoever asks."""

    def __init__(self) -> None:
        self._finished: list[EpisodeRecord] = []
        self._faults: list[Fault] = []
        self._dropped = 0

    def drain_episodes(self) -> list[EpisodeRecord]:
        """Episodes finished since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def drain_faults(self) -> FaultReport:
        """Failures since the last call."""
        report = FaultReport(tuple(self._faults), self._dropped)
        self._faults, self._dropped = [], 0
        return report


class Collector(Occurrences):
    """Transitions of one worker's environments.

    Rows are written into a grid of (steps, environments). A batch takes the wanted number of transitions
    out of it; those that the last step gave beyond that open the next grid. Of an environment that fails, the rows
    of its open episode are taken back, as far as no batch has them yet.

    Args:
        tolerance: of failures; by default the first one is raised.

    Raises:
        TooManyRestarts: environments fail more often than that; also of `collect` and `set_state`.
    """

    def __init__(
        self,
        envs: VectorEnvs,
        act: Act,
        worker: int,
        begin: Begin = lambda rows: None,
        tolerance: Tolerance | None = None,
    ) -> None:
        super().__init__()
        self._envs, self._act, self._begin = envs, act, begin
        self._tolerance = tolerance or Tolerance()
        count = envs.num_envs
        self._grid: dict[str, Array] = {}
        self._valid = np.zeros((0, count), bool)
        self._rows = self._transitions = 0
        self._episodes = worker * c.EPISODES_PER_WORKER
        self._steps = 0
        self._start_episodes()
        envs.reset()
        self._restart_failed()

    def collect(self, count: int, enough: Callable[[int], bool] = never) -> Batch:
        """Exactly `count` transitions, each environment's in order and together.

        Args:
            enough: asked before each step whether so many will do.
        """
        while self._transitions < count and not enough(self._transitions):
            self._step()
        return self._take(min(count, self._transitions))

    def get_state(self) -> State:
        """Open episodes and counters; complete where the environments record their episodes."""
        return {
            "envs": self._envs.get_state(),
            "episodes": self._episodes,
            "eps_id": self._eps_id.copy(),
            "t": self._t.copy(),
            "returns": self._returns.copy(),
            "finished": [[record.return_, record.length] for record in self._finished],
            "steps": self._steps,
            "faults": list(self._tolerance.seen),
        }

    def set_state(self, state: State, open_episodes: bool) -> None:
        """Go on from a saved state; without `open_episodes` all environments begin new ones."""
        self._envs.set_state(state["envs"])
        self._rows = self._transitions = 0
        self._episodes = int(state["episodes"])
        self._finished = [EpisodeRecord(float(total), int(length)) for total, length in state["finished"]]
        self._start_episodes()
        if open_episodes:
            self._episodes = int(state["episodes"])
            self._eps_id, self._t = state["eps_id"].copy(), state["t"].copy()
            self._returns = state["returns"].copy()
        self._steps = int(state["steps"])
        self._tolerance.seen = deque(map(int, state["faults"]))
        self._restart_failed()

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    def _start_episodes(self) -> None:
        count = self._envs.num_envs
        self._eps_id = self._episodes + np.arange(count, dtype=np.int64)
        self._episodes += count
        self._t = np.zeros(count, np.int64)
        self._returns = np.zeros(count)
        self._begin(np.ones(count, bool))

    def _step(self) -> None:
        obs = self._envs.obs
        actions, env_actions, extras = self._act(obs)
        if self._rows == len(self._valid):
            self._grow({c.OBS: obs, c.NEXT_OBS: obs, c.ACTIONS: actions, **extras})
        grid, row = self._grid, self._rows
        grid[c.OBS][row] = obs  # before the step: environments may reuse the array
        step = self._envs.step(env_actions)
        grid[c.ACTIONS][row] = actions
        grid[c.REWARDS][row] = step.rewards
        grid[c.NEXT_OBS][row] = step.next_obs
        grid[c.TERMINATEDS][row] = step.terminateds
        grid[c.TRUNCATEDS][row] = step.truncateds
        grid[c.EPS_ID][row] = self._eps_id
        grid[c.T][row] = self._t
        for name, column in extras.items():
            grid[name][row] = column
        self._rows += 1
        self._steps += self._envs.num_envs
        self._returns += step.rewards
        if step.valid is None:
            self._valid[row] = True
            self._t += 1
            self._transitions += self._envs.num_envs
        else:
            self._valid[row] = step.valid
            self._t += step.valid
            self._transitions += int(np.count_nonzero(step.valid))
            self._begin(~step.valid)
        ended = step.terminateds | step.truncateds
        if np.count_nonzero(ended):  # a sixth of what any() takes
            self._end_episodes(np.flatnonzero(ended), step.infos)
            self._begin(ended)
        if self._envs.faults:
            self._restart_failed()

    def _end_episodes(self, ended: Array, infos: Infos) -> None:
        sums, lengths = self._returns[ended].tolist(), self._t[ended].tolist()
        for env, total, length in zip(ended.tolist(), sums, lengths, strict=True):
            self._finished.append(EpisodeRecord(total, length, info=infos.get(env, {})))
        self._eps_id[ended] = self._episodes + np.arange(ended.size)
        self._episodes += ended.size
        self._t[ended] = 0
        self._returns[ended] = 0.0

    def _restart_failed(self) -> None:
        while faults := self._envs.faults:
            for fault in faults:
                self._tolerance.bear(fault, self._steps)
                self._faults.append(fault)
            self._drop(self._envs.restart())

    def _drop(self, envs: Array) -> None:
        """Take back what open episodes have in the grid, and begin others; bool (num_envs,)."""
        if self._rows:
            rows = self._valid[: self._rows]
            open_ = rows & envs & (self._grid[c.EPS_ID][: self._rows] == self._eps_id)
            rows[open_] = False
            self._transitions -= int(np.count_nonzero(open_))
        self._dropped += int(np.count_nonzero(self._t[envs]))
        self._eps_id[envs] = self._episodes + np.arange(np.count_nonzero(envs))
        self._episodes += int(np.count_nonzero(envs))
        self._t[envs] = 0
        self._returns[envs] = 0.0
        self._begin(envs)

    def _take(self, count: int) -> Batch:
        rows, envs = self._rows, self._envs.num_envs
        surplus = self._transitions - count
        valid = self._valid[:rows]
        carried = np.flatnonzero(valid[-1])[-surplus:] if surplus else np.zeros(0, np.int64)
        valid[-1, carried] = False
        mask = None if self._transitions == rows * envs and not surplus else valid.T
        batch = {name: _by_env(column[:rows], mask) for name, column in self._grid.items()}
        self._transitions = surplus
        self._rows = 1 if surplus else 0
        if surplus:
            for column in self._grid.values():
                column[0] = column[rows - 1]
            self._valid[0] = False
            self._valid[0, carried] = True
        return Batch(batch)

    def _grow(self, like: dict[str, Array]) -> None:
        """Double the grid's rows; the first call takes the columns' dtypes and shapes from `like`."""
        count = self._envs.num_envs
        if not self._grid:
            self._grid = {
                c.REWARDS: np.zeros((0, count), np.float32),
                c.TERMINATEDS: np.zeros((0, count), bool),
                c.TRUNCATEDS: np.zeros((0, count), bool),
                c.ENV_ID: np.zeros((0, count), np.int64),
                c.EPS_ID: np.zeros((0, count), np.int64),
                c.T: np.zeros((0, count), np.int64),
                **{name: np.zeros((0, *column.shape), column.dtype) for name, column in like.items()},
            }
        more = max(self._rows, 8)
        self._valid = _longer(self._valid, more)
        self._grid = {name: _longer(column, more) for name, column in self._grid.items()}
        self._grid[c.ENV_ID][:] = np.arange(count)


def _longer(array: Array, more: int) -> Array:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])


def _by_env(grid: Array, mask: Array | None) -> Array:
    """Rows (steps, envs, ...) as (envs * steps, ...), copied; only those in `mask` (envs, steps) where given."""
    by_env = grid.swapaxes(0, 1)
    if mask is not None:
        return by_env[mask]
    return by_env.copy().reshape(-1, *grid.shape[2:])
