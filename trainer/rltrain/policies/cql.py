"""Conservative Q-learning (Kumar et al. 2020), the entropy form CQL(H), on soft actor-critic."""

import math
from collections.abc import Generator, Sequence
from typing import Final

import torch
from gymnasium import spaces

from rltrain.api.config import CQLConfig
from rltrain.models.adam import Moments
from rltrain.models.flat import gradient
from rltrain.models.soft_actor_critic import ConservativeActorCritic, TwinMLP
from rltrain.models.spaces import Space
from rltrain.policies.base import LearnInfo
from rltrain.policies.sac import STATS, Rows, SoftPolicy
from rltrain.policies.sharing import ALL, alone
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout.batch import Batch
from rltrain.state import Array

CQL_STATS: Final = (*STATS, "td_loss", "cql_penalty", "penalty_factor")
LARGEST_FACTOR: Final = 1e6


def actor_loss(network: ConservativeActorCritic, rows: Rows, *, imitate: bool) -> torch.Tensor:
    """SAC's, or, to imitate the data, `alpha * logp - logp(data's actions)`; float32 ()."""
    x = network.encoder(rows.obs)
    alpha = network.alpha.log.detach().exp()
    params = network.actor(x)
    actions, logp = network.squashed.transform(params, rows.noise)
    if imitate:
        imitation: torch.Tensor = (alpha * logp - network.squashed.log_prob(params, rows.actions)).mean()
        return imitation
    q = network.critics(torch.cat([x, actions], dim=1), frozen=True).amin(dim=0).squeeze(1)
    loss: torch.Tensor = (alpha * logp - q).mean()
    return loss


def td_errors(network: ConservativeActorCritic, target: TwinMLP, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    """Both critics' values of the data, and their errors, float32 (2, n). The target has no entropy in it."""
    with torch.no_grad():
        next_x = network.encoder(rows.next_obs)
        following = network.q_of(target, next_x, network.choose(next_x, rows.next_noise)).amin(dim=0).squeeze(1)
        wanted = rows.rewards + rows.discounts * following
    q = network.q_taken(network.encoder(rows.obs), rows.actions)
    return q, q - wanted


def penalty(
    network: ConservativeActorCritic,
    rows: Rows,
    q_data: torch.Tensor,
    draws: Sequence[torch.Tensor],
    temperature: float,
) -> torch.Tensor:
    """How much larger a soft maximum of each critic is than its values of the data; float32 (2,).

    The maximum is over actions at `obs` that are drawn uniformly, from the policy at `next_obs` and from the policy
    at `obs`, each less the logarithm of its density there (Kumar et al. 2020, appendix F).

    Args:
        q_data: float32 (2, n).
        draws: uniform numbers in [-1, 1], and standard normal noise for `next_obs` and `obs`; (n, k, components) each.
    """
    uniform, next_noise, noise = draws
    n, k, components = uniform.shape
    x = network.encoder(rows.obs)
    with torch.no_grad():
        next_params = network.actor(network.encoder(rows.next_obs)).repeat_interleave(k, dim=0)
        next_actions, next_logp = network.squashed.transform(next_params, next_noise.reshape(n * k, components))
        params = network.actor(x).repeat_interleave(k, dim=0)
        actions, logp = network.squashed.transform(params, noise.reshape(n * k, components))
        drawn = torch.cat([uniform, next_actions.view(n, k, components), actions.view(n, k, components)], dim=1)
        uniform_logp = torch.full((n, k), components * math.log(0.5), device=x.device)
        density = torch.cat([uniform_logp, next_logp.view(n, k), logp.view(n, k)], dim=1)
    inputs = torch.cat([x[:, None].expand(-1, 3 * k, -1), drawn], dim=2).view(n * 3 * k, -1)
    q = network.critics(inputs).view(2, n, 3 * k)
    largest = temperature * torch.logsumexp((q - density) / temperature, dim=2)
    return largest.mean(dim=1) - q_data.mean(dim=1)


class CQLPolicy(SoftPolicy[CQLConfig]):
    """Learns from data alone: the critics are held down where the data has no actions."""

    _network: ConservativeActorCritic

    def __init__(
        self, config: CQLConfig, obs_space: Space, action_space: spaces.Box, seeds: Seeds, device: str = "cpu"
    ) -> None:
        super().__init__(config, obs_space, action_space, seeds, device)
        self._learn_imitating = self._function(self._imitate)
        self._learn_improving = self._function(self._improve)

    def _build(self, obs_space: Space, action_space: spaces.Box | spaces.Discrete) -> ConservativeActorCritic:
        assert isinstance(action_space, spaces.Box)
        # Its parts learn by losses of their own, which leaves none for an encoder: images are taken as numbers.
        model = self._config.model.model_copy(update={"conv_filters": ()})
        return ConservativeActorCritic(self._config, model, obs_space, action_space)

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        """One update of alpha, then the actor, then the critics, each with what the one before it has become."""
        learn = self._learn_imitating if self._imitating else self._learn_improving
        return self._info(*learn(*self._arguments(batch)))

    def _shared_update(self, batch: Batch, rows: slice) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        return self._info(*(yield from self._steps(*self._arguments(batch, rows), imitate=self._imitating)))

    @property
    def _imitating(self) -> bool:
        return int(self._adam.moments.step) < self._config.bc_iters

    def _arguments(self, batch: Batch, rows: slice = ALL) -> list[torch.Tensor]:
        size = (batch.count, self._config.num_actions, self._network.noise_size)
        uniform = torch.rand(size, generator=self._generator, device=self.device) * 2 - 1
        noise = [torch.randn(size, generator=self._generator, device=self.device) for _ in range(2)]
        return [*super()._arguments(batch, rows), *[each[rows] for each in (uniform, *noise)]]

    def _info(self, td_error: torch.Tensor, norm: torch.Tensor, summary: torch.Tensor) -> LearnInfo:
        errors: Array = td_error.cpu().numpy()
        stats = dict(zip(CQL_STATS, summary.tolist(), strict=True))
        return LearnInfo({**stats, "grad_norm": float(norm), "lr": self._lr}, errors)

    def _imitate(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return alone(self._steps(*arguments, imitate=True))

    def _improve(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return alone(self._steps(*arguments, imitate=False))

    def _steps(
        self,
        vector: torch.Tensor,
        step: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        target: torch.Tensor,
        lr: torch.Tensor,
        *tensors: torch.Tensor,
        imitate: bool,
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Move `vector` and its moments by what gradients become; returns TD errors, their norm and the stats."""
        config, network = self._config, self._network
        rows, draws = Rows(*tensors[:-3]), tensors[-3:]
        norms: list[torch.Tensor] = []

        def descend(part: str, loss: torch.Tensor) -> Generator[torch.Tensor, torch.Tensor, torch.Tensor]:
            """Move a part by its own loss; returns the loss."""
            at = self._places[part]
            slope = yield gradient(loss, parameters[at.parameters])
            with torch.no_grad():
                # Every part has made as many steps; they are counted once, below.
                moments = Moments(step.clone(), mean[at.values], square[at.values])
                norms.append(self._adam.descend(vector[at.values], moments, slope, lr))
            return loss.detach()

        with self._flat.at(vector) as parameters, self._target_flat.at(target):
            with torch.no_grad():
                entropy = -network.choose(network.encoder(rows.obs), rows.noise).logp.mean()
            alpha_loss = yield from descend("alpha", network.alpha.log * (entropy - self._target_entropy))
            actor = yield from descend("actor", actor_loss(network, rows, imitate=imitate))
            q, errors = td_errors(network, self._target, rows)
            td_loss = (rows.weights * errors.square()).mean(dim=1).sum()
            excess = penalty(network, rows, q, draws, config.temperature) * config.min_q_weight
            factor = network.penalty_factor.log.exp().clamp(0.0, LARGEST_FACTOR)
            if config.lagrangian:
                over = excess - config.lagrangian_thresh
                critics = yield from descend("critics", td_loss + (factor.detach() * over).sum())
                yield from descend("penalty_factor", -0.5 * (factor * over.detach()).sum())
            else:
                critics = yield from descend("critics", td_loss + excess.sum())
            alpha = network.alpha.log.detach().exp()
        with torch.no_grad():
            step.add_(1)
            q, errors = q.detach(), errors.detach()
            shown = [q.mean(), q.min(), q.max(), errors.mean(), td_loss.detach(), excess.detach().mean()]
            stats = torch.stack([alpha, entropy, alpha_loss, actor, critics, *shown, factor.detach()])
            return errors.abs().mean(dim=0), torch.linalg.vector_norm(torch.stack(norms)), stats
