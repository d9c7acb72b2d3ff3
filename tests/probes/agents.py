"""Probe environments with several agents, each made for one question."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]

Values = dict[str, Any]


class Roll(ParallelEnv):  # type: ignore[misc]
    """Agents come and go as told; observation [agent, life, t of the life, t of the episode], reward agent + 1 a step.

    Args:
        lives: of each agent, its lives as (first step, steps that it acts).
        truncate: agents whose lives are cut rather than ended.
        tell_last: give the observation after an agent's last step.
    """

    metadata = {"name": "roll"}

    def __init__(
        self,
        lives: Mapping[str, Sequence[tuple[int, int]]],
        truncate: Sequence[str] = (),
        tell_last: bool = True,
    ) -> None:
        self._lives, self._truncate, self._tell_last = lives, truncate, tell_last
        self.possible_agents = list(lives)
        self.agents: list[str] = []
        self.length = max(first + count for each in lives.values() for first, count in each)
        self._actions: list[Values] = []

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-1.0, np.inf, (4,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Values, Values]:
        self._t = 0
        self.agents = self._there(0)
        return {agent: self._obs(agent) for agent in self.agents}, {}

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        assert actions.keys() == set(self.agents), "those that are there act, and nobody else"
        acted = self.agents
        ended = {a: any(first + count == self._t + 1 for first, count in self._lives[a]) for a in acted}
        rewards = {agent: float(self.possible_agents.index(agent) + 1) for agent in acted}
        last = {agent: self._obs(agent, 1) for agent in acted if self._tell_last or not ended[agent]}
        self._t += 1
        self.agents = self._there(self._t)
        obs = {**{agent: self._obs(agent) for agent in self.agents}, **last}
        cut = {agent: ended[agent] and agent in self._truncate for agent in acted}
        infos = {agent: {"last": agent} for agent in acted}
        return obs, rewards, {agent: ended[agent] and not cut[agent] for agent in acted}, cut, infos

    def _there(self, t: int) -> list[str]:
        return [a for a, lives in self._lives.items() if any(first <= t < first + count for first, count in lives)]

    def _obs(self, agent: str, later: int = 0) -> Any:
        life, first = max((i, first) for i, (first, _) in enumerate(self._lives[agent]) if first <= self._t)
        own, t = self.possible_agents.index(agent), self._t + later
        return np.array([own, life, t - first, t], np.float32)


class Breaks(Roll):
    """The same; in the fourth step of its second episode it raises, unless it has been made again."""

    made = 0

    def __init__(self, lives: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        super().__init__(lives)
        Breaks.made += 1
        self._resets, self._breaks = 0, Breaks.made % 4 in (1, 2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Values, Values]:
        self._resets += 1
        return super().reset(seed, options)

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        if self._breaks and (self._resets, self._t) == (2, 3):
            raise RuntimeError("this probe raises")
        return super().step(actions)


class Stuck(Roll):
    """The same; in the third step of some of its episodes, one in `every` by their seeds, it hangs, dies or raises.

    Args:
        at: step in which it does so; 0 is the reset.
    """

    def __init__(
        self, lives: Mapping[str, Sequence[tuple[int, int]]], kind: str, every: int = 1, at: int = 3, made: bool = True
    ) -> None:
        super().__init__(lives)
        if not made:
            os._exit(7)
        self._kind, self._every, self._at = kind, every, at

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Values, Values]:
        self._bad = (seed or 0) % self._every == 0
        self._misbehave(0)
        return super().reset(seed, options)

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        self._misbehave(self._t + 1)
        return super().step(actions)

    def _misbehave(self, step: int) -> None:
        if self._bad and step == self._at:
            if self._kind == "hang":
                time.sleep(3600)
            if self._kind == "die":
                os._exit(7)
            raise RuntimeError("this probe raises")


class Meets(Roll):
    """The same; in its first step it waits for so many others to be in theirs."""

    def __init__(self, lives: Mapping[str, Sequence[tuple[int, int]]], folder: str, count: int) -> None:
        super().__init__(lives)
        self._folder, self._count = Path(folder), count

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        (self._folder / str(os.getpid())).touch()
        while len(list(self._folder.iterdir())) < self._count:
            time.sleep(0.01)
        return super().step(actions)


class Seen(Roll):
    """The same with a picture, 32 x 48: as bright as steps were taken."""

    metadata: Any = {"name": "seen", "render_fps": 20}

    def __init__(
        self, lives: Mapping[str, Sequence[tuple[int, int]]], render_mode: str | None = None, blind: bool = False
    ) -> None:
        super().__init__(lives)
        self._draws = render_mode == "rgb_array" and not blind

    def render(self) -> Any:
        return np.full((32, 48, 3), 40 * self._t, np.uint8) if self._draws else None


class Tell(ParallelEnv):  # type: ignore[misc]
    """Each agent is paid for naming what it sees, and all once more if all are right; 20 steps: learnt in seconds.

    Args:
        agents: how many there are.
        sizes: what each has to choose from.
        leaves: the step after which the last agent goes, 0 for never.
    """

    metadata = {"name": "tell"}

    def __init__(self, agents: int = 2, sizes: Sequence[int] = (3, 3), leaves: int = 0) -> None:
        self.possible_agents = [f"agent_{index}" for index in range(agents)]
        self._shown: Values = {}
        self._sizes = dict(zip(self.possible_agents, sizes, strict=True))
        self._leaves = leaves
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return spaces.Discrete(self._sizes[agent])

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(self._sizes[agent])

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Values, Values]:
        self._rng = np.random.default_rng(seed)
        self._t = 0
        self.agents = list(self.possible_agents)
        return self._show(), {}

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        acted = self.agents
        right = {agent: float(np.array_equal(actions[agent], self._shown[agent])) for agent in acted}
        rewards = {agent: right[agent] + float(all(right.values())) for agent in acted}
        self._t += 1
        over = self._t == 20
        gone = {agent: self._t == self._leaves and agent == self.possible_agents[-1] for agent in acted}
        self.agents = [] if over else [agent for agent in acted if not gone[agent]]
        obs = self._show(acted)
        return obs, rewards, gone, {agent: over and not gone[agent] for agent in acted}, {}

    def _show(self, agents: Sequence[str] | None = None) -> Values:
        agents = self.agents if agents is None else agents
        self._shown = {agent: int(self._rng.integers(self._sizes[agent])) for agent in agents}
        return dict(self._shown)


class Steer(Tell):
    """The same over numbers: each agent is paid by how near its action is to what it sees."""

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-1.0, 1.0, (1,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Box(-2.0, 2.0, (1,), np.float32)

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        near = {agent: 1.0 - abs(float(actions[agent][0] - self._shown[agent][0])) for agent in self.agents}
        zeros = dict.fromkeys(self.agents, -1)
        obs, _, terminateds, truncateds, infos = super().step(zeros)
        return obs, near, terminateds, truncateds, infos

    def _show(self, agents: Sequence[str] | None = None) -> Values:
        agents = self.agents if agents is None else agents
        self._shown = {agent: self._rng.uniform(-1, 1, 1).astype(np.float32) for agent in agents}
        return {agent: shown.copy() for agent, shown in self._shown.items()}


class Recalls(Tell):
    """Each agent is shown 0 or 1 once and then twice 2, and is paid for naming it at last: it takes a memory."""

    def __init__(self) -> None:
        super().__init__(2, (3, 3))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        acted, first = self.agents, self._shown
        self._t += 1
        over = self._t == 3
        self.agents = [] if over else acted
        rewards = {agent: float(over and actions[agent] == first[agent]) for agent in acted}
        no = dict.fromkeys(acted, False)
        return dict.fromkeys(acted, 2), rewards, dict.fromkeys(acted, over), no, {}

    def _show(self, agents: Sequence[str] | None = None) -> Values:
        self._shown = {agent: int(self._rng.integers(2)) for agent in self.agents}
        return dict(self._shown)


class Odd(Tell):
    """Misbehaves in one way at its third step.

    Args:
        kind: what is wrong.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(2, (3, 3))
        self._kind = kind

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        obs, rewards, terminateds, truncateds, infos = super().step(actions)
        one = self.possible_agents[0]
        if self._t == 3:
            if self._kind == "raise":
                raise RuntimeError("this probe raises")
            if self._kind == "reward":
                rewards[one] = np.nan
            if self._kind == "no reward":
                del rewards[one]
            if self._kind == "no observation":
                del obs[one]
            if self._kind == "observation":
                obs[one] = 7
            if self._kind == "leaves":
                self.agents = self.agents[1:]
            if self._kind == "stays":
                terminateds[one] = True
            if self._kind == "stranger":
                self.agents = [*self.agents, "stranger"]
        return obs, rewards, terminateds, truncateds, infos


class Turns(AECEnv):  # type: ignore[misc]
    """Its agents act by turns."""

    possible_agents = ["one"]


class Nameless(ParallelEnv):  # type: ignore[misc]
    """Doesn't say which agents there can be."""


def tells(agents: int = 2, sizes: Sequence[int] = (3, 3), leaves: int = 0) -> Tell:
    """A function rather than a class, as PettingZoo's own modules have it."""
    return Tell(agents, sizes, leaves)
