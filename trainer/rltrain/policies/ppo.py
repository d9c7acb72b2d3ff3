"""PPO (Schulman et al. 2017) whose minibatch gradients can be averaged over ranks."""

from collections.abc import Generator, Sequence
from itertools import pairwise

import numpy as np
import torch

from rltrain.api.config import DDPPOConfig
from rltrain.models.actor_critic import ActorCritic
from rltrain.models.flat import gradient
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.base import LearnInfo, interpolate
from rltrain.policies.gae import gae, standardized
from rltrain.policies.n_step import continues
from rltrain.policies.sharing import alone
from rltrain.policies.torch_policy import Seeds, TorchPolicy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array

_LEARNT_FROM = (c.OBS, c.ACTIONS, c.ACTION_LOGP, c.VF_PREDS, c.VALUE_TARGETS, c.ADVANTAGES)
_STATS = ("loss", "policy_loss", "vf_loss", "entropy", "approx_kl", "clip_fraction")


class PPOPolicy(TorchPolicy):
    """Actor and critic; the clipped objective without a KL term."""

    def __init__(
        self, config: DDPPOConfig, obs_space: Space, action_space: Space, seeds: Seeds, device: str = "cpu"
    ) -> None:
        self._config = config
        self._entropy_coeff = config.entropy_coeff

        def build() -> ActorCritic:
            self._network = ActorCritic(config.model, config.vf_share_layers, obs_space, action_space)
            self._distribution = self._network.distribution
            return self._network

        super().__init__(config, build, seeds, device)
        self._bonus = torch.zeros((), device=self.device)
        self._draw = self._function(self._draw_actions)
        self._slope = self._function(self._gradient)

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        noise = self._distribution.noise(len(obs), self._generator) if explore else None
        actions, logp = self._draw(self._flat.vector, noise, as_tensor(obs, self.device))
        extras: dict[str, Array] = {c.ACTION_LOGP: logp.cpu().numpy()} if explore else {}
        return actions.cpu().numpy(), extras

    def postprocess(self, batch: Batch) -> Batch:
        """Add VF_PREDS, ADVANTAGES and VALUE_TARGETS."""
        goes_on = continues(batch)
        cut = np.flatnonzero(~goes_on)  # rows whose next observation isn't the next row's
        with torch.inference_mode():
            obs = np.concatenate([batch[c.OBS], batch[c.NEXT_OBS][cut]])
            predictions = self._network.values(as_tensor(obs, self.device)).cpu().numpy()
        values = predictions[: batch.count]
        next_values = np.empty_like(values)
        next_values[:-1] = values[1:]
        next_values[cut] = predictions[batch.count :]
        config = self._config
        advantages = gae(
            batch[c.REWARDS], values, next_values, batch[c.TERMINATEDS], goes_on, config.gamma, config.lambda_
        )
        return batch.with_columns(
            **{c.VF_PREDS: values, c.ADVANTAGES: advantages, c.VALUE_TARGETS: advantages + values}
        )

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        return alone(self.minibatch_sgd(batch))

    def minibatches_of(self, batch: Batch) -> int:
        return -(-batch.count // self._config.sgd_minibatch_size)

    def minibatch_sgd(
        self, batch: Batch, *, minibatches: int | None = None
    ) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        count = self.minibatches_of(batch) if minibatches is None else minibatches
        if count < self.minibatches_of(batch):
            raise ValueError(f"{batch.count} rows need more than the {count} minibatches agreed on")
        scaled = batch.with_columns(**{c.ADVANTAGES: standardized(batch[c.ADVANTAGES])})
        columns = [as_tensor(scaled[name], self.device) for name in _LEARNT_FROM]
        sizes = _minibatch_sizes(batch.count, count)
        totals = torch.zeros(len(_STATS), device=self.device)
        norms = torch.zeros((), device=self.device)
        updates = 0
        for _ in range(self._config.num_sgd_iter):
            order = torch.from_numpy(self._rng.permutation(batch.count)).to(self.device)
            shuffled = [torch.split(column[order], sizes) for column in columns]
            for rows in zip(*shuffled, strict=True):
                mean = yield self.gradient(rows, totals)
                if self._take(mean):
                    norms += self._apply_gradient()
                    updates += 1
        rows_seen = max(batch.count * self._config.num_sgd_iter, 1)
        stats = dict(zip(_STATS, (totals / rows_seen).tolist(), strict=True))
        stats |= {"grad_norm": float(norms) / max(updates, 1), "vf_explained_var": _explained_variance(batch)}
        return LearnInfo({**stats, "lr": self._lr, "entropy_coeff": self._entropy_coeff})

    def gradient(self, rows: Sequence[torch.Tensor], totals: torch.Tensor) -> torch.Tensor:
        """The loss's gradient summed over rows, then their number, float32 (parameters + 1,).

        Vectors of several ranks, added, hold the gradient of their rows together: the sum over the count.

        Args:
            rows: columns of a minibatch, those of `_LEARNT_FROM`; may have no rows.
            totals: float32 (stats,), to which the sums of `_STATS` over the rows are added.
        """
        if not len(rows[0]):
            return torch.zeros(self._flat.size + 1, device=self.device)
        vector: torch.Tensor = self._slope(self._flat.vector, self._bonus.fill_(self._entropy_coeff), totals, *rows)[0]
        return vector

    def set_global_step(self, env_steps: int) -> None:
        super().set_global_step(env_steps)
        if self._config.entropy_coeff_schedule:
            self._entropy_coeff = interpolate(self._config.entropy_coeff_schedule, env_steps)

    def exploration_state(self) -> dict[str, float]:
        return {"entropy_coeff": self._entropy_coeff}

    def _take(self, total: torch.Tensor) -> bool:
        """Put the gradient over all ranks' rows in place; False where no rank had any."""
        rows = float(total[-1])
        if rows == 0:
            return False
        torch.div(total[:-1], rows, out=self._flat.gradient)
        return True

    @torch.no_grad()
    def _draw_actions(
        self, vector: torch.Tensor, noise: torch.Tensor | None, obs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions, the likeliest ones without noise, and their log-probabilities."""
        with self._flat.at(vector):
            params = self._network.params(obs)
            distribution = self._distribution
            actions = distribution.mode(params) if noise is None else distribution.sample(params, noise)
            return actions, distribution.log_prob(params, actions)

    def _gradient(
        self, vector: torch.Tensor, entropy_coeff: torch.Tensor, totals: torch.Tensor, *rows: torch.Tensor
    ) -> tuple[torch.Tensor]:
        """See `gradient`."""
        with self._flat.at(vector) as parameters:
            loss, stats = self._loss(dict(zip(_LEARNT_FROM, rows, strict=True)), entropy_coeff)
            slope = gradient(loss, parameters)
        count = len(rows[0])
        totals.add_(stats, alpha=count)
        return (torch.cat([slope * count, slope.new_full((1,), count)]),)

    def _loss(self, rows: dict[str, torch.Tensor], entropy_coeff: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        config = self._config
        params, values = self._network(rows[c.OBS])
        logp = self._distribution.log_prob(params, rows[c.ACTIONS])
        entropy = self._distribution.entropy(params).mean()
        log_ratio = logp - rows[c.ACTION_LOGP]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
        advantages = rows[c.ADVANTAGES]
        policy_loss = -torch.minimum(advantages * ratio, advantages * clipped).mean()
        targets, before = rows[c.VALUE_TARGETS], rows[c.VF_PREDS]
        near = before + (values - before).clamp(-config.vf_clip_param, config.vf_clip_param)
        vf_loss = torch.maximum((values - targets).square(), (near - targets).square()).mean()
        loss = policy_loss + config.vf_loss_coeff * vf_loss - entropy_coeff * entropy
        with torch.no_grad():
            kl = (ratio - 1 - log_ratio).mean()  # Schulman's unbiased estimate, positive by construction
            outside = ((ratio - 1).abs() > config.clip_param).float().mean()
            means = [each.detach() for each in (loss, policy_loss, vf_loss, entropy, kl, outside)]
            return loss, torch.stack(means)


def _explained_variance(batch: Batch) -> float:
    """1 - Var(target - prediction) / Var(target); 0 where targets don't vary."""
    if not batch.count:
        return 0.0
    variance = float(batch[c.VALUE_TARGETS].var())
    return 1 - float((batch[c.VALUE_TARGETS] - batch[c.VF_PREDS]).var()) / variance if variance > 0 else 0.0


def _minibatch_sizes(rows: int, count: int) -> list[int]:
    """`count` sizes that differ by one at most and add up to `rows`."""
    bounds = [rows * i // max(count, 1) for i in range(count + 1)]
    return [stop - start for start, stop in pairwise(bounds)]
