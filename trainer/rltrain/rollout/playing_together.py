"""Whole episodes of several agents, on their policies' best actions."""

from collections.abc import Callable

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.policies.group import PolicyGroup
from rltrain.rollout.agents_envs import ParallelEnvs
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.seats import GroupActor, Seats


def play_together(
    group: PolicyGroup,
    env: EnvSpec,
    numbers: range,
    seed: int,
    num_envs: int,
    most_envs: int,
    watch: Callable[[int, int], None] | None,
) -> list[EpisodeRecord]:
    """As `evaluation.evaluate`: records in the order of the episodes' numbers; nothing but the seed decides them.

    Args:
        numbers: of the episodes.
        most_envs: environments that policies act on at once, played or not.
    """
    tables: list[_Table] = []
    try:
        for episode in numbers[:num_envs]:
            tables.append(_Table(env, seed, episode))
        seats = {name: Seats(group.roster, name, most_envs) for name in group.policies}
        actor = GroupActor(group, seats, explore=False)
        records: dict[int, EpisodeRecord] = {}
        waiting, steps, playing = iter(numbers[len(tables) :]), 0, dict(enumerate(tables))
        for row, table in playing.items():
            _look(table, row, seats, actor)
        while playing:
            actor.act()
            for row, table in list(playing.items()):
                over = table.step(actor.actions(row))
                steps += 1
                if over:
                    records[table.episode] = table.record(group)
                    following = next(waiting, None)
                    if following is None:
                        del playing[row]
                    else:
                        table.begin(following)
                _look(table, row, seats, actor)
            if watch is not None:
                watch(len(records), steps)
        return [records[episode] for episode in numbers]
    finally:
        for table in tables:
            table.close()


def _look(table: "_Table", row: int, seats: dict[str, Seats], actor: GroupActor) -> None:
    """Agents that are to act now; those that have come since the last step have no memory of one."""
    for name, its in seats.items():
        its.look(row, table.obs)
        new = [its.of(row).start + place for place, agent in enumerate(its.agents) if agent in table.new]
        if new:
            actor.begin(name, np.array(new))


class _Table:
    """An environment that plays one numbered episode after another.

    Attributes:
        obs: what to act on next, by agent.
        new: agents that act for the first time.
    """

    def __init__(self, spec: EnvSpec, seed: int, episode: int) -> None:
        self._envs = ParallelEnvs(spec, num_envs=1, seed=seed, worker=0, record=False)
        self._env = self._envs.envs[0]
        try:
            self.begin(episode)
        except BaseException:
            self.close()
            raise

    def begin(self, episode: int) -> None:
        """Begin an episode."""
        self.episode = episode
        self._env.set_state({"episode": episode - 1})  # the one after it is begun
        self.obs = self._env.obs
        self.new = set(self.obs)
        self._returns: dict[str, float] = {}
        self._length = 0

    def step(self, actions: dict[str, object]) -> bool:
        """Every agent acts; whether that ended the episode."""
        step = self._env.step(actions)
        self.obs = self._env.obs
        stayed = {name for name in actions if not (step.terminateds[name] or step.truncateds[name])}
        self.new = set(self.obs) - stayed
        for name, reward in step.rewards.items():
            self._returns[name] = self._returns.get(name, 0.0) + reward
        self._length += 1
        return step.over

    def record(self, group: PolicyGroup) -> EpisodeRecord:
        """Of the episode that has ended."""
        returns = {
            policy: [self._returns[agent] for agent in agents if agent in self._returns]
            for policy, agents in group.roster.agents.items()
        }
        means = {policy: float(np.mean(each)) for policy, each in returns.items() if each}
        return EpisodeRecord(sum(self._returns.values()), self._length, means)

    def close(self) -> None:
        self._envs.close()
