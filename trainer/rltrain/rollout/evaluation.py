"""How good a policy is: whole episodes with fresh seeds, several at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.models.spaces import action_mapping
from rltrain.policies.base import Learned, Policy
from rltrain.policies.group import PolicyGroup
from rltrain.rollout.acting import Actor
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.environments import Space
from rltrain.rollout.playing_together import play_together
from rltrain.rollout.subprocesses import one_env
from rltrain.state import Array

NUM_ENVS: Final = 16
"""Environments played at once, and rows of each batch of observations: a network may round otherwise for others."""
MOST_APART: Final = 4
"""Environments played at once where each has a process, which takes about a second to start."""
_NOT_TRAINING: Final = 1 << 32
"""Set in seeds, above all that a job's can have, so that no episode was trained on."""

Watch = Callable[[int, int], None]
"""Told how many episodes are finished and how many steps were taken, after each step of all environments."""


@dataclass(frozen=True)
class Scores:
    """What some episodes say of a policy; `episode_return_std` is that of the episodes, not of their mean."""

    episode_return_mean: float
    episode_return_std: float
    episode_return_min: float
    episode_return_max: float
    episode_length_mean: float
    episodes: int

    @classmethod
    def of(cls, records: Sequence[EpisodeRecord]) -> "Scores":
        """Of at least one episode."""
        returns = np.array([record.return_ for record in records])
        return cls(
            episode_return_mean=float(returns.mean()),
            episode_return_std=float(returns.std()),
            episode_return_min=float(returns.min()),
            episode_return_max=float(returns.max()),
            episode_length_mean=float(np.mean([record.length for record in records])),
            episodes=len(records),
        )


def evaluate(
    policy: Learned[Any],
    env: EnvSpec,
    episodes: int,
    seed: int,
    *,
    first: int = 0,
    num_envs: int = NUM_ENVS,
    watch: Watch | None = None,
) -> list[EpisodeRecord]:
    """Play episodes on the policy's best actions; the records in the order of the episodes' numbers.

    An episode's seed comes from its number, and every episode that begins is counted, however long it takes. So the
    result depends on nothing but the seed, not on the number of environments nor on who plays which of the episodes,
    and short episodes have no advantage.

    Args:
        policy: acts; must not change.
        env: what to play.
        episodes: at least 1.
        seed: of the episodes.
        first: number of the first one.
        num_envs: from 1 to `NUM_ENVS`.
        watch: told of the progress.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env`, `EnvList` and `ProcessEnvs`, whose limit of a step holds.
    """
    numbers = range(first, first + episodes)
    num_envs = min(num_envs, MOST_APART) if env.apart else num_envs
    if isinstance(policy, PolicyGroup):
        return play_together(policy, env, numbers, seed | _NOT_TRAINING, num_envs, NUM_ENVS, watch)
    assert isinstance(policy, Policy)
    seats: list[_Seat] = []
    try:
        for episode in numbers[:num_envs]:
            seats.append(_Seat(env.scored(), seed, row=len(seats), episode=episode))
        return _play(policy, seats, numbers, watch)
    finally:
        for seat in seats:
            seat.close()


def _play(policy: Policy, seats: list["_Seat"], numbers: range, watch: Watch | None) -> list[EpisodeRecord]:
    to_env = action_mapping(seats[0].action_space)
    # Rows without a player keep an observation that the policy can take.
    obs = np.repeat(seats[0].obs[None], NUM_ENVS, axis=0)
    records: dict[int, EpisodeRecord] = {}
    actor = Actor(policy, NUM_ENVS, explore=False)
    waiting, steps = iter(numbers[len(seats) :]), 0
    while seats:
        for seat in seats:
            obs[seat.row] = seat.obs
        actions = to_env(actor.act(obs)[0])
        for seat in seats:
            record = seat.step(actions[seat.row : seat.row + 1])
            if record is not None:
                records[seat.episode] = record
                following = next(waiting, None)
                if following is not None:
                    seat.begin(following)
                    actor.begin(np.array([seat.row]))
        steps += len(seats)
        seats = [seat for seat in seats if seat.episode not in records]
        if watch is not None:
            watch(len(records), steps)
    return [records[episode] for episode in numbers]


class _Seat:
    """An environment that plays one numbered episode after another, and its row in the batch."""

    def __init__(self, spec: EnvSpec, seed: int, row: int, episode: int) -> None:
        self.row = row
        self._id = spec.id
        self._envs = one_env(spec, seed | _NOT_TRAINING, worker=0)
        self.action_space: Space = self._envs.action_space
        try:
            self.begin(episode)
        except BaseException:
            self.close()
            raise

    def begin(self, episode: int) -> None:
        """Reset to an episode."""
        self.episode, self._return, self._length = episode, 0.0, 0
        # A list that is taken up again begins the episode after the saved one.
        self._envs.set_state({"episodes": [episode - 1]})
        self._raise_fault()

    @property
    def obs(self) -> Array:
        """What to act on next."""
        row: Array = self._envs.obs[0]
        return row

    def step(self, action: Array) -> EpisodeRecord | None:
        """Act, (1, *shape); the episode's record if this ended it."""
        step = self._envs.step(action)
        self._return += float(step.rewards[0])
        self._length += 1
        self._raise_fault()
        ended = bool(step.terminateds[0] or step.truncateds[0])
        return EpisodeRecord(self._return, self._length) if ended else None

    def close(self) -> None:
        self._envs.close()

    def _raise_fault(self) -> None:
        if self._envs.faults:
            raise EnvironmentFailed(self._envs.faults[0].message)
