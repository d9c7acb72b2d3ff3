"""MultiAgentCollector: steps environments with several agents and cuts what they do into batches by policy."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from rltrain.policies.group import PolicyGroup
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.faults import NO_FAULTS, FaultReport
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.rollout.parallel_envs import AgentsStep, ParallelEnvs
from rltrain.rollout.seats import GroupActor, Seats
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

    def take(self, num_envs: int) -> Batch:
        """All steps so far, each agent's together and in order."""
        mask = np.stack(self._taken, axis=1)
        columns = {name: np.stack([step[name] for step in self._steps], axis=1)[mask] for name in self._steps[0]}
        of_env = np.arange(len(mask)) // len(self.seats.agents)
        columns[c.ENV_STEP] = (np.arange(mask.shape[1]) * num_envs + of_env[:, None])[mask]
        self._steps, self._taken = [], []
        return Batch(columns)


class MultiAgentCollector:
    """Transitions of one worker's environments, in batches by policy.

    Args:
        actor: acts on the seats.
        seats: of each policy.
    """

    def __init__(self, envs: ParallelEnvs, group: PolicyGroup, worker: int) -> None:
        self._envs = envs
        self._tracks = {name: _Track(Seats(group.roster, name, envs.num_envs)) for name in group.policies}
        self.actor = GroupActor(group, {name: track.seats for name, track in self._tracks.items()}, explore=True)
        self._episodes = worker * c.EPISODES_PER_WORKER
        self._lengths = [0] * envs.num_envs
        self._finished: list[EpisodeRecord] = []
        for index in range(envs.num_envs):
            self._begin(index)

    def collect(self, count: int) -> MultiAgentBatch:
        """As many env steps, the same number of each environment.

        Raises:
            EnvironmentFailed: an environment raised or returned what it must not.
            ValueError: they can't be shared out evenly.
        """
        steps, rest = divmod(count, self._envs.num_envs)
        if rest:
            raise ValueError(f"{count} steps of {self._envs.num_envs} environments")
        for _ in range(steps):
            self._step()
        return MultiAgentBatch({name: track.take(self._envs.num_envs) for name, track in self._tracks.items()}, count)

    def drain_episodes(self) -> list[EpisodeRecord]:
        """Episodes finished since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def drain_faults(self) -> FaultReport:
        """None: the first failure of an environment is raised."""
        return NO_FAULTS

    def get_state(self) -> State:
        """Open episodes and counters; complete where the environments record their episodes."""
        return {
            "envs": self._envs.get_state(),
            "episodes": self._episodes,
            "lengths": list(self._lengths),
            "tracks": {name: _open_episodes(track) for name, track in self._tracks.items()},
            "finished": [[record.return_, record.length, dict(record.by_policy)] for record in self._finished],
        }

    def set_state(self, state: State, open_episodes: bool) -> None:
        """Go on from a saved state; without `open_episodes` all environments begin new ones."""
        self._envs.set_state(state["envs"])
        self._episodes = int(state["episodes"])
        self._finished = [EpisodeRecord(float(r), int(length), by_policy) for r, length, by_policy in state["finished"]]
        for index, env in enumerate(self._envs.envs):
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
        for index, env in enumerate(self._envs.envs):
            outcome = env.step(self.actor.actions(index))
            self._lengths[index] += 1
            for name, track in self._tracks.items():
                track.record(rows[name], index, outcome)
            if outcome.over:
                self._end(index)
                self._begin(index)
            else:
                self._look(index, env.obs, rows)

    def _begin(self, index: int) -> None:
        """An environment's next episode."""
        env = self._envs.envs[index]
        env.begin()
        self._lengths[index] = 0
        self._look(index, env.obs)

    def _end(self, index: int) -> None:
        total, by_policy = 0.0, {}
        for name, track in self._tracks.items():
            mine = track.seats.of(index)
            returns = track.returns[mine][track.was_there[mine]]
            total += float(returns.sum())
            if returns.size:
                by_policy[name] = float(returns.mean())
        self._finished.append(EpisodeRecord(total, self._lengths[index], by_policy))

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
