"""MultiAgentCollector: steps environments with several agents and cuts what they do into batches by policy."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rltrain.api.errors import EnvironmentFailed, RltrainError, TooManyRestarts
from rltrain.rollout import columns as c
from rltrain.rollout.agents_env import AgentsStep
from rltrain.rollout.agents_envs import ParallelEnvs
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import EpisodeRecord, Occurrences, never
from rltrain.rollout.faults import Fault, Tolerance
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.rollout.seats import ActTogether, GroupActor, Seats
from rltrain.state import Array, State

_Rows: TypeAlias = dict[str, Array]
"""A step of one policy's agents, by column."""


class _Track:
    """The steps of one policy's agents. An agent's steps, from when it comes to when it goes, are an episode."""

    def __init__(self, seats: Seats) -> None:
        rows = len(seats.obs)
        self.seats = seats
        self.eps_id = np.full(rows, -1, np.int64)
        self.t = np.zeros(rows, np.int64)
        self.returns = np.zeros(rows)
        self.was_there = np.zeros(rows, bool)
        self._steps: list[_Rows] = []
        self._taken: list[Array] = []

    def open(self, actions: Array, extras: Mapping[str, Array]) -> _Rows:
        """Rows of a step whose outcome isn't known yet."""
        rows = len(self.seats.obs)
        step = {
            c.OBS: self.seats.obs.copy(),
            c.ACTIONS: actions,
            c.REWARDS: np.zeros(rows, np.float32),
            c.NEXT_OBS: self.seats.obs.copy(),
            c.TERMINATEDS: np.zeros(rows, bool),
            c.TRUNCATEDS: np.zeros(rows, bool),
            c.ENV_ID: np.arange(rows),
            c.EPS_ID: self.eps_id.copy(),
            c.T: self.t.copy(),
            **{name: column.copy() for name, column in extras.items()},
        }
        self._steps.append(step)
        self._taken.append(self.seats.taken.copy())
        return step

    def record(self, step: _Rows, env: int, outcome: AgentsStep) -> None:
        """An environment's part of a step's outcome."""
        for row, agent in enumerate(self.seats.agents, self.seats.of(env).start):
            if agent in outcome.rewards:
                step[c.REWARDS][row] = outcome.rewards[agent]
                step[c.TERMINATEDS][row] = outcome.terminateds[agent]
                step[c.TRUNCATEDS][row] = outcome.truncateds[agent]
                if agent in outcome.next_obs:
                    step[c.NEXT_OBS][row] = outcome.next_obs[agent]
                self.returns[row] += outcome.rewards[agent]
                self.was_there[row] = True
                self.t[row] += 1

    def take(self, number: Array, carried: Array) -> Batch:
        """The steps so far, each agent's together and in order.

        Args:
            number: int64 (steps, envs), of each env step in the batch; -1 of those that aren't part of it.
            carried: bool (envs,), environments whose last step is left for the next batch.
        """
        of_env = np.arange(len(self.t)) // len(self.seats.agents)
        number = number.T[of_env]
        mask = np.stack(self._taken, axis=1) & (number >= 0)
        columns = {name: np.stack([step[name] for step in self._steps], axis=1)[mask] for name in self._steps[0]}
        columns[c.ENV_STEP] = number[mask]
        kept = len(self._steps) - int(carried.any())
        self._steps, self._taken = self._steps[kept:], self._taken[kept:]
        return Batch(columns)


class MultiAgentCollector(Occurrences):
    """Transitions of one worker's environments, in batches by policy.

    Of an environment that fails, the steps of its open episode are taken back, as far as no batch has them yet.

    Args:
        tolerance: of failures; by default the first one is raised.
        explore: act as training does, rather than best.

    Raises:
        TooManyRestarts: environments fail more often than that; also of `collect` and `set_state`.
    """

    def __init__(
        self,
        envs: ParallelEnvs,
        group: ActTogether,
        worker: int,
        tolerance: Tolerance | None = None,
        *,
        explore: bool = True,
    ) -> None:
        super().__init__()
        self._envs = envs
        self._tolerance = tolerance or Tolerance()
        self._tracks = {name: _Track(Seats(group.roster, name, envs.num_envs)) for name in group.policies}
        self.actor = GroupActor(group, {name: track.seats for name, track in self._tracks.items()}, explore=explore)
        self._episodes = worker * c.EPISODES_PER_WORKER
        self._lengths = [0] * envs.num_envs
        self._steps = self._ready = 0
        self._valid: list[Array] = []
        for index in range(envs.num_envs):
            self._begin(index)

    def collect(self, count: int, enough: Callable[[int], bool] = never) -> MultiAgentBatch:
        """Exactly so many env steps, each environment's in order; fewer where `enough` says that these will do."""
        while self._ready < count and not enough(self._ready):
            self._step()
        count = min(count, self._ready)
        valid = np.stack(self._valid)
        self._ready = surplus = self._ready - count
        carried = np.zeros(self._envs.num_envs, bool)
        carried[np.flatnonzero(valid[-1])[-surplus:] if surplus else []] = True
        valid[-1] &= ~carried
        number = np.where(valid, valid.cumsum().reshape(valid.shape) - 1, -1)
        self._valid = [carried] if surplus else []
        return MultiAgentBatch({name: track.take(number, carried) for name, track in self._tracks.items()}, count)

    def get_state(self) -> State:
        """Open episodes and counters; complete where the environments record their episodes."""
        return {
            "envs": self._envs.get_state(),
            "episodes": self._episodes,
            "lengths": list(self._lengths),
            "tracks": {name: _open_episodes(track) for name, track in self._tracks.items()},
            "finished": [[record.return_, record.length, dict(record.by_policy)] for record in self._finished],
            "steps": self._steps,
            "faults": list(self._tolerance.seen),
        }

    def set_state(self, state: State, open_episodes: bool) -> None:
        """Go on from a saved state; without `open_episodes` all environments begin new ones."""
        failed = self._envs.set_state(state["envs"])
        self._steps = int(state["steps"])
        self._tolerance.seen = deque(map(int, state["faults"]))
        self._episodes = int(state["episodes"])
        self._finished = [EpisodeRecord(float(r), int(length), by_policy) for r, length, by_policy in state["finished"]]
        for index, env in enumerate(self._envs.envs):
            if index in failed:
                self._begin(index, failed[index])
            else:
                self._lengths[index] = 0
                self._look(index, env.obs)
        if open_episodes:
            self._episodes, self._lengths = int(state["episodes"]), [int(length) for length in state["lengths"]]
            for name, saved in state["tracks"].items():
                for key, column in saved.items():
                    getattr(self._tracks[name], key)[:] = column

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    def _step(self) -> None:
        rows = {name: self._tracks[name].open(*acted) for name, acted in self.actor.act().items()}
        self._valid.append(np.zeros(self._envs.num_envs, bool))
        self._steps += self._envs.num_envs
        for index, env in enumerate(self._envs.envs):
            env.act(self.actor.actions(index))
        for index, env in enumerate(self._envs.envs):
            try:
                outcome = env.outcome()
            except EnvironmentFailed as error:
                self._take_back(index)
                self._begin(index, error)
                continue
            self._valid[-1][index] = True
            self._ready += 1
            self._lengths[index] += 1
            for name, track in self._tracks.items():
                track.record(rows[name], index, outcome)
            if outcome.over:
                self._end(index, outcome.infos)
                self._begin(index)
            else:
                self._look(index, env.obs, rows)

    def _take_back(self, index: int) -> None:
        """Drop an environment's open episode, whose next step has failed."""
        self._dropped += bool(self._lengths[index])
        for valid in self._valid[:-1][-self._lengths[index] or len(self._valid) :]:
            self._ready -= int(valid[index])
            valid[index] = False

    def _begin(self, index: int, error: RltrainError | None = None) -> None:
        """An environment's next episode; after an error the environment is made again first."""
        env = self._envs.envs[index]
        self._lengths[index] = 0
        while True:
            try:
                if error is not None:
                    fault = Fault.of(error, index)
                    self._tolerance.bear(fault, self._steps)
                    self._faults.append(fault)
                    env.make_again()
                env.begin()
                break
            except TooManyRestarts:
                raise
            except RltrainError as another:
                error = another
        self._look(index, env.obs)

    def _end(self, index: int, info: Mapping[str, Any]) -> None:
        total, by_policy = 0.0, {}
        for name, track in self._tracks.items():
            mine = track.seats.of(index)
            returns = track.returns[mine][track.was_there[mine]]
            total += float(returns.sum())
            if returns.size:
                by_policy[name] = float(returns.mean())
        self._finished.append(EpisodeRecord(total, self._lengths[index], by_policy, info))

    def _look(self, index: int, obs: Mapping[str, Array], step: Mapping[str, _Rows] | None = None) -> None:
        """Agents that are to act now, and whose own episodes begin: all of them without a `step` before."""
        for name, track in self._tracks.items():
            mine = track.seats.of(index)
            going_on = np.zeros(len(track.seats.agents), bool)
            if step is None:
                track.returns[mine], track.was_there[mine] = 0.0, False
            else:
                going_on = track.seats.taken[mine] & ~(step[name][c.TERMINATEDS] | step[name][c.TRUNCATEDS])[mine]
            track.seats.look(index, obs)
            begins = mine.start + np.flatnonzero(track.seats.taken[mine] & ~going_on)
            track.eps_id[begins] = self._episodes + np.arange(begins.size)
            self._episodes += begins.size
            track.t[begins] = 0
            if begins.size:
                self.actor.begin(name, begins)


def _open_episodes(track: _Track) -> State:
    return {
        "eps_id": track.eps_id.copy(),
        "t": track.t.copy(),
        "returns": track.returns.copy(),
        "was_there": track.was_there.copy(),
    }
