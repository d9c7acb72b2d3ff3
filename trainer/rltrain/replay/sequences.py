"""SequenceBuffer: a replay buffer of sequences, cut from episodes for recurrent networks (Kapturowski et al. 2019)."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rltrain.api.errors import CheckpointMismatch
from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, State

_PER_STEP = (c.ACTIONS, c.REWARDS, c.DISCOUNTS)


@dataclass(frozen=True)
class SequenceShape:
    """How episodes are cut.

    Attributes:
        burn_in: observations before the learnt steps, as far as their own episode has them.
        learnt: most steps that are learnt of a sequence.
        states: keep the recurrent state that each sequence was acted with at its begin.
    """

    burn_in: int
    learnt: int
    states: bool = False

    @property
    def length(self) -> int:
        """Steps of a whole sequence."""
        return self.burn_in + self.learnt

    @property
    def starts(self) -> list[int]:
        """Every START that there can be, rising: at an episode's begin there is no burn-in, later ever more."""
        return sorted({max(self.burn_in - before, 0) for before in range(0, self.length, self.learnt)})


class Lane(NamedTuple):
    """Where episodes follow one another: an environment of a worker."""

    worker: int
    env: int


@dataclass(frozen=True)
class OpenEpisode:
    """The steps of an episode that are still needed, in order.

    Attributes:
        first: index of the first one that hasn't been cut into a sequence; those before it are burn-in.
    """

    rows: Batch
    first: int = 0

    def followed_by(self, rows: Batch) -> bool:
        """Whether these are the same episode's next steps."""
        return bool(rows[c.EPS_ID][0] == self.rows[c.EPS_ID][-1] and rows[c.T][0] == self.rows[c.T][-1] + 1)


class Slicer:
    """Cuts steps, as they come, into the sequences of their episodes: each step is learnt in exactly one of them.

    A sequence is ready with its last step; an episode's last one may be short. What an environment leaves
    unfinished, because its worker was lost, is dropped with the rest that has not been cut.
    """

    def __init__(self, shape: SequenceShape) -> None:
        self.shape = shape
        self._open: dict[Lane, OpenEpisode] = {}

    def cut(self, batch: Batch) -> Batch | None:
        """The sequences that these steps complete, if any.

        Args:
            batch: steps with OBS, NEXT_OBS, ACTIONS, REWARDS, DISCOUNTS, TERMINATEDS, TRUNCATEDS, EPS_ID, T and
                ENV_ID, and STATE where states are kept; each environment's are together and in order.

        Returns:
            One row a sequence. OBS (burn_in + learnt + 1, *shape): the learnt steps' begin at row `burn_in`, their
            burn-in ends before it, the observation after the last one follows. ACTIONS, REWARDS and DISCOUNTS
            (learnt, ...). START, the first row of OBS that isn't padding; SEQ_LENS, the number of learnt steps;
            and STATE, at START, where states are kept.
        """
        sequences: list[dict[str, Array]] = []
        for rows in _runs(batch):
            lane = Lane(int(rows[c.EPS_ID][0]) // c.EPISODES_PER_WORKER, int(rows[c.ENV_ID][0]))
            before = self._open.pop(lane, None)
            if before is not None and before.followed_by(rows):
                episode = replace(before, rows=Batch.concat([before.rows, rows]))
            else:
                episode = OpenEpisode(rows)
            ended = bool(rows[c.TERMINATEDS][-1] or rows[c.TRUNCATEDS][-1])
            while episode.first < episode.rows.count:
                stop = min(episode.first + self.shape.learnt, episode.rows.count)
                if stop - episode.first < self.shape.learnt and not ended:
                    break
                sequences.append(sequence(episode.rows, episode.first, stop, self.shape))
                kept = max(stop - max(self.shape.burn_in, 1), 0)  # of one at least, that tells what follows it
                episode = OpenEpisode(episode.rows.slice(kept, episode.rows.count), stop - kept)
            if not ended:
                self._open[lane] = episode
        if not sequences:
            return None
        return Batch({name: np.stack([each[name] for each in sequences]) for name in sequences[0]})

    def get_state(self) -> State:
        """The open episodes."""
        episodes = [
            {"worker": lane.worker, "env": lane.env, "first": each.first, "rows": dict(each.rows.columns)}
            for lane, each in self._open.items()
        ]
        return {"burn_in": self.shape.burn_in, "learnt": self.shape.learnt, "open": episodes}

    def set_state(self, state: State) -> None:
        """Take up open episodes.

        Raises:
            CheckpointMismatch: they were cut otherwise.
        """
        saved = (state["burn_in"], state["learnt"])
        if saved != (self.shape.burn_in, self.shape.learnt):
            raise CheckpointMismatch(
                f"the saved sequences have {saved[0]} steps of burn-in and {saved[1]} that are learnt, these "
                f"{self.shape.burn_in} and {self.shape.learnt}: set burn_in and model.max_seq_len as saved"
            )
        self._open = {
            Lane(int(each["worker"]), int(each["env"])): OpenEpisode(Batch(each["rows"]), int(each["first"]))
            for each in state["open"]
        }


def sequence(rows: Batch, first: int, stop: int, shape: SequenceShape) -> dict[str, Array]:
    """One sequence, which learns rows `first` to `stop` (excluded) of an episode's. See `Slicer.cut`."""
    begin, count = max(first - shape.burn_in, 0), stop - first
    start = shape.burn_in - (first - begin)
    obs = np.zeros((shape.length + 1, *rows[c.OBS].shape[1:]), rows[c.OBS].dtype)
    obs[start : shape.burn_in + count] = rows[c.OBS][begin:stop]
    obs[shape.burn_in + count] = rows[c.NEXT_OBS][stop - 1]
    columns = {c.OBS: obs, c.START: np.array(start), c.SEQ_LENS: np.array(count)}
    for name in _PER_STEP:
        columns[name] = np.zeros((shape.learnt, *rows[name].shape[1:]), rows[name].dtype)
        columns[name][:count] = rows[name][first:stop]
    if shape.states:
        columns[c.STATE] = rows[c.STATE][begin]
    return columns


def _runs(batch: Batch) -> list[Batch]:
    """The batch's stretches of one episode each."""
    episodes = batch[c.EPS_ID]
    edges = [0, *(np.flatnonzero(episodes[1:] != episodes[:-1]) + 1).tolist(), batch.count]
    return [batch.slice(start, stop) for start, stop in pairwise(edges) if stop > start]


class SequenceBuffer(ReplayBuffer):
    """Sequences rather than transitions: they are what its capacity, its statistics and its priorities are of.

    Args:
        shape: of the sequences.
        learning_starts: steps that sequences must have brought before `sample` is ready.
        capacity, alpha, beta, eps, prioritized, seed: see `ReplayBuffer`; a sequence has one priority.
    """

    def __init__(
        self,
        shape: SequenceShape,
        capacity: int,
        alpha: float = 0.6,
        beta: float = 0.4,
        eps: float = 1e-6,
        prioritized: bool = False,
        learning_starts: int = 0,
        seed: int = 0,
        name: str = "replay",
    ) -> None:
        super().__init__(capacity, alpha, beta, eps, prioritized, learning_starts, seed, name)
        self._slicer = Slicer(shape)
        self._steps = 0

    @property
    def warm(self) -> bool:
        return self._steps >= self.learning_starts

    def add(self, batch: Batch, td_error: Array | None = None) -> None:
        """Store the sequences that these steps complete (see `Slicer.cut`), with the largest priority so far.

        Raises:
            TrainingFailed: columns differ from the first batch's.
        """
        if td_error is not None:
            raise ValueError("sequences have no priorities before they are learnt from")
        sequences = self._slicer.cut(batch)
        if sequences is not None:
            self._steps += sequences.steps
            super().add(sequences)

    def sample(self, count: int) -> Batch | None:
        """Draw as many sequences as `count` steps have room for, burn-in included, and at least one."""
        return super().sample(max(1, count // self._slicer.shape.length))

    def get_state(self) -> State:
        return {**super().get_state(), "steps": self._steps, "slicer": self._slicer.get_state()}

    def set_state(self, state: State) -> None:
        if "slicer" not in state:
            raise CheckpointMismatch("the saved replay buffer holds transitions, this one sequences")
        self._slicer.set_state(state["slicer"])
        super().set_state(state)
        self._steps = int(state["steps"])
