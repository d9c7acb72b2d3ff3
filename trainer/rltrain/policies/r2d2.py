"""R2D2 (Kapturowski et al. 2019): double Q-learning over replayed sequences with a recurrent network."""

from collections.abc import Callable, Generator
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from gymnasium import spaces
from torch.nn import functional

from rltrain.api.config import R2D2Config
from rltrain.models.adam import Moments
from rltrain.models.flat import gradient
from rltrain.models.recurrent import RecurrentQNetwork
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.base import LearnInfo
from rltrain.policies.q_learning import QLearningPolicy
from rltrain.policies.sharing import ALL, alone
from rltrain.policies.torch_policy import Seeds
from rltrain.replay.sequences import SequenceShape
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array

_STATS = ("loss", "grad_norm", "mean_q", "min_q", "max_q", "mean_td_error")
_LARGEST: Final = 0.9
"""Share of the largest error in a sequence's priority, the rest is the mean's (section 2.3)."""


def squash(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x (Pohlen et al. 2018, section 3.2)."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + epsilon * x


def unsquash(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    """The inverse of `squash` (Pohlen et al. 2018, proposition A.2).

    Its ((sqrt(1 + 4 epsilon a) - 1) / 2 epsilon)^2 - 1, with a = |x| + 1 + epsilon, is written without the
    difference of nearly equal numbers, which float32 can't take.
    """
    a = x.abs() + 1 + epsilon
    return x.sign() * ((2 * a / ((1 + 4 * epsilon * a).sqrt() + 1)).square() - 1)


def sequence_priority(td_errors: torch.Tensor, learnt: torch.Tensor) -> torch.Tensor:
    """0.9 max |error| + 0.1 mean |error| over the learnt steps; errors of either sign must not cancel (section 2.3).

    Args:
        td_errors: float32 (n, steps).
        learnt: bool (n, steps), at least one a row.
    """
    errors = td_errors.abs() * learnt
    return _LARGEST * errors.amax(dim=1) + (1 - _LARGEST) * errors.sum(dim=1) / learnt.sum(dim=1)


class R2D2Policy(QLearningPolicy[RecurrentQNetwork]):
    """Recurrent Q network, target network and epsilon-greedy exploration over a Discrete action space."""

    def __init__(
        self, config: R2D2Config, obs_space: Space, action_space: spaces.Discrete, seeds: Seeds, device: str = "cpu"
    ) -> None:
        self._config = config
        self._shape = SequenceShape(config.burn_in, config.model.max_seq_len)
        self._squash: Callable[[torch.Tensor], torch.Tensor] = lambda x: x
        self._unsquash = self._squash
        if config.use_h_function:
            self._squash = partial(squash, epsilon=config.h_function_epsilon)
            self._unsquash = partial(unsquash, epsilon=config.h_function_epsilon)
        super().__init__(config, partial(RecurrentQNetwork, config, obs_space), action_space, seeds, device)

    def initial_state(self, rows: int) -> Array:
        return np.zeros((rows, self._network.state_size), np.float32)

    def compute_actions(
        self, obs: Array, *, explore: bool, state: Array | None = None
    ) -> tuple[Array, dict[str, Array]]:
        state = self.initial_state(len(obs)) if state is None else state
        with torch.inference_mode():
            scores, after = self._network(as_tensor(obs, self.device).unsqueeze(1), as_tensor(state, self.device))
            actions: Array = scores.squeeze(1).argmax(dim=1).cpu().numpy()
        columns = {c.NEXT_STATE: after.cpu().numpy()}
        if not self._config.zero_init_states:
            columns[c.STATE] = state
        return self._explored(actions) if explore else actions, columns

    def postprocess(self, batch: Batch) -> Batch:
        discounts = np.where(batch[c.TERMINATEDS], 0, self._config.gamma).astype(np.float32)
        return batch.with_columns(**{c.DISCOUNTS: discounts})

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        """One update.

        Args:
            batch: sequences as `replay.sequences.Slicer.cut` gives them, with WEIGHTS where they were sampled by
                priority. Without STATE they begin with zeros.

        Returns:
            As `td_error` each sequence's priority before its exponent, see `sequence_priority`.
        """
        return alone(self._shared_update(batch, ALL))

    def _shared_update(self, batch: Batch, rows: slice) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        initial = batch[c.STATE] if c.STATE in batch else self.initial_state(batch.count)
        weights = batch[c.WEIGHTS] if c.WEIGHTS in batch else np.ones(batch.count, np.float32)
        names = (c.OBS, c.ACTIONS, c.REWARDS, c.DISCOUNTS, c.START, c.SEQ_LENS)
        columns = (*(batch[name] for name in names), initial, weights)
        priorities, summary = yield from self._steps(
            self._flat.vector,
            *self._adam.moments,
            self._target_flat.vector,
            self._learning_rate.fill_(self._lr),
            *[as_tensor(column[rows], self.device) for column in columns],
        )
        stats = dict(zip(_STATS, summary.tolist(), strict=True))
        errors: Array = priorities.cpu().numpy()
        return LearnInfo({**stats, "lr": self._lr}, errors)

    def _steps(
        self,
        vector: torch.Tensor,
        step: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        target: torch.Tensor,
        lr: torch.Tensor,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        discounts: torch.Tensor,
        start: torch.Tensor,
        seq_lens: torch.Tensor,
        initial: torch.Tensor,
        weights: torch.Tensor,
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Move `vector` and its moments by what the gradient becomes; returns priorities of sequences and the stats."""
        learnt = torch.arange(self._shape.learnt, device=obs.device) < seq_lens[:, None]
        steps = learnt.sum()
        with torch.no_grad(), self._target_flat.at(target):
            target_q = self._scores(self._target, obs, start, initial)
        with self._flat.at(vector) as parameters:
            scores = self._scores(self._network, obs, start, initial)
            taken = scores[:, :-1].gather(2, actions[:, :, None]).squeeze(2)
            with torch.no_grad():
                # What follows step t is judged at t + 1, by networks that have seen all up to there.
                chooser = scores if self._config.double_q else target_q
                best = chooser[:, 1:].argmax(dim=2, keepdim=True)
                following = self._unsquash(target_q[:, 1:].gather(2, best).squeeze(2))
                wanted = self._squash(rewards + discounts * following)
            td_error = (taken - wanted) * learnt
            losses = functional.huber_loss(td_error, torch.zeros_like(td_error), reduction="none")
            loss = (weights[:, None] * losses).sum() / steps
            slope = gradient(loss, parameters)
        slope = yield slope
        with torch.no_grad():
            norm = self._adam.descend(vector, Moments(step, mean, square), slope, lr)
            td_error, q = td_error.detach(), self._unsquash(taken.detach())
            low, high = q.where(learnt, torch.inf).min(), q.where(learnt, -torch.inf).max()
            means = [(each * learnt).sum() / steps for each in (q, td_error)]
            summary = torch.stack([loss.detach(), norm, means[0], low, high, means[1]])
        return sequence_priority(td_error, learnt), summary

    def _scores(
        self, network: RecurrentQNetwork, obs: torch.Tensor, start: torch.Tensor, initial: torch.Tensor
    ) -> torch.Tensor:
        """Values, float32 (n, learnt + 1, actions), at the learnt steps and after the last; burn-in has no gradient.

        Args:
            obs: (n, burn_in + learnt + 1, *shape).
            start: int64 (n,), the step at which `initial` is the state.
        """
        with torch.no_grad():
            state = initial
            for begin, end in pairwise(self._shape.starts):
                state = initial.where((start == begin)[:, None], state)
                _, state = network(obs[:, begin:end], state)
            state = initial.where((start == self._shape.burn_in)[:, None], state)
        scores: torch.Tensor = network(obs[:, self._shape.burn_in :], state)[0]
        return scores
