"""Soft actor-critic (Haarnoja et al. 2018b), continuous and discrete (Christodoulou 2019)."""

import copy
import math
from collections.abc import Generator
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from rltrain.api.config import CQLConfig, SACConfig
from rltrain.models.adam import Moments
from rltrain.models.flat import FlatParameters, gradient
from rltrain.models.soft_actor_critic import ContinuousActorCritic, DiscreteActorCritic, SoftActorCritic, TwinMLP
from rltrain.models.spaces import Space
from rltrain.models.tensors import as_tensor
from rltrain.policies.base import LearnInfo
from rltrain.policies.n_step import n_step
from rltrain.policies.sharing import ALL, alone
from rltrain.policies.torch_policy import Seeds, TorchPolicy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, State

STATS: Final = (
    *("alpha", "entropy", "alpha_loss", "actor_loss", "critic_loss"),
    *("mean_q", "min_q", "max_q", "mean_td_error"),
)


class Rows(NamedTuple):
    """What an update learns from: columns of a batch, and what the actor's draws are made from.

    Attributes:
        discounts: float32 (n,), 0 where an episode terminated, which leaves the reward alone as the target.
        noise, next_noise: standard normal float32 (n, noise_size), for draws at `obs` and at `next_obs`.
    """

    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_obs: torch.Tensor
    discounts: torch.Tensor
    weights: torch.Tensor
    noise: torch.Tensor
    next_noise: torch.Tensor


class Losses(NamedTuple):
    """What an update minimises, and what it tells.

    Attributes:
        alpha, actor, critics: float32 (), each a function of its own parameters alone.
        td_error: float32 (n,), the mean of both critics' absolute ones.
        stats: float32 (len(STATS),).
    """

    alpha: torch.Tensor
    actor: torch.Tensor
    critics: torch.Tensor
    td_error: torch.Tensor
    stats: torch.Tensor


def sac_losses(network: SoftActorCritic, target: TwinMLP, rows: Rows, target_entropy: float) -> Losses:
    """Losses at the network's present parameters (Haarnoja et al. 2018b, eq. 5, 9 and 18).

    Args:
        target: the target's critics.
        target_entropy: what alpha steers to, in nats.
    """
    x, next_x = network.encoder(rows.obs), network.encoder(rows.next_obs)
    alpha = network.alpha.log.detach().exp()
    with torch.no_grad():
        following = network.choose(next_x, rows.next_noise)
        lesser = network.q_of(target, next_x, following).amin(dim=0)
        soft_value = (following.probs * (lesser - alpha * following.logp)).sum(dim=1)
        wanted = rows.rewards + rows.discounts * soft_value
    q = network.q_taken(x, rows.actions)
    errors = q - wanted
    critics = 0.5 * (rows.weights * errors.square()).mean(dim=1).sum()
    seen = x.detach()  # images are encoded as the critics want it; the actor alone would lose what it doesn't need
    choice = network.choose(seen, rows.noise)
    lesser = network.q_of(network.critics, seen, choice, frozen=True).amin(dim=0)
    actor = (choice.probs * (alpha * choice.logp - lesser)).sum(dim=1).mean()
    entropy = -(choice.probs * choice.logp).sum(dim=1).mean().detach()
    alpha_loss = network.alpha.log * (entropy - target_entropy)
    q, errors = q.detach(), errors.detach()
    losses = [alpha_loss.detach(), actor.detach(), critics.detach()]
    stats = torch.stack([alpha, entropy, *losses, q.mean(), q.min(), q.max(), errors.mean()])
    return Losses(alpha_loss, actor, critics, errors.abs().mean(dim=0), stats)


class Place(NamedTuple):
    """Where a part's parameters are: in the flat vector, and in the list of parameters."""

    values: slice
    parameters: slice


def places(network: nn.Module) -> dict[str, Place]:
    """Of each of a network's children, by name."""
    found: dict[str, Place] = {}
    value = position = 0
    for name, part in network.named_children():
        sizes = [parameter.numel() for parameter in part.parameters()]
        found[name] = Place(slice(value, value + sum(sizes)), slice(position, position + len(sizes)))
        value, position = value + sum(sizes), position + len(sizes)
    return found


C = TypeVar("C", SACConfig, CQLConfig)


class SoftPolicy(TorchPolicy, Generic[C]):
    """What SAC and CQL share: networks, target critics, acting and saving."""

    def __init__(
        self, config: C, obs_space: Space, action_space: spaces.Box | spaces.Discrete, seeds: Seeds, device: str
    ) -> None:
        self._config: C = config

        def build() -> SoftActorCritic:
            self._network = self._build(obs_space, action_space)
            return self._network

        super().__init__(config, build, seeds, device)
        given = config.target_entropy
        self._target_entropy = self._network.target_entropy if given is None else given
        self._target = copy.deepcopy(self._network.critics)
        self._target.requires_grad_(False)
        self._target_flat = FlatParameters(self._target)
        self._learning_rate = torch.zeros((), device=self.device)
        self._places = places(self._network)

    def _build(self, obs_space: Space, action_space: spaces.Box | spaces.Discrete) -> SoftActorCritic:
        kind = ContinuousActorCritic if isinstance(action_space, spaces.Box) else DiscreteActorCritic
        return kind(self._config, self._config.model, obs_space, action_space)  # type: ignore[arg-type]

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        network, distribution = self._network, self._network.distribution
        with torch.inference_mode():
            params = network.actor(network.encoder(as_tensor(obs, self.device)))
            if explore:
                actions = distribution.sample(params, distribution.noise(len(obs), self._generator))
            else:
                actions = distribution.mode(params)
        chosen: Array = actions.cpu().numpy()
        return chosen, {}

    def postprocess(self, batch: Batch) -> Batch:
        return n_step(batch, self._config.n_step, self._config.gamma)

    def update_target(self) -> None:
        """Move the target critics towards the critics, by a share of `tau`."""
        own = self._flat.vector[self._places["critics"].values]
        self._target_flat.vector.lerp_(own, self._config.tau)

    def exploration_state(self) -> dict[str, float]:
        return {"alpha": math.exp(float(self._network.alpha.log.detach()))}

    def learned_state(self) -> State:
        return {**super().learned_state(), "target": self._target_flat.get()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._target_flat.set(state["target"])

    def _arguments(self, batch: Batch, rows: slice = ALL) -> list[torch.Tensor]:
        """What `_steps` takes: networks and optimizer, which it changes in place, and the batch's rows.

        Noise is drawn for the whole batch, so that a row has the same whoever learns from it.
        """
        size = (batch.count, self._network.noise_size)
        noise: list[torch.Tensor] = [torch.randn(size, generator=self._generator, device=self.device) for _ in range(2)]
        names = (c.OBS, c.ACTIONS, c.REWARDS, c.NEXT_OBS, c.DISCOUNTS, c.WEIGHTS)
        columns: list[torch.Tensor] = [as_tensor(batch[name][rows], self.device) for name in names]
        lr = self._learning_rate.fill_(self._lr)
        noise = [each[rows] for each in noise]
        return [self._flat.vector, *self._adam.moments, self._target_flat.vector, lr, *columns, *noise]


class SACPolicy(SoftPolicy[SACConfig]):
    """SAC over a Box with finite bounds, or a Discrete space.

    Until `learning_starts` steps have been sampled actions are uniformly random: the first buffer then covers all
    actions, whereas an untrained actor's lie around 0.
    """

    def __init__(
        self,
        config: SACConfig,
        obs_space: Space,
        action_space: spaces.Box | spaces.Discrete,
        seeds: Seeds,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, obs_space, action_space, seeds, device)
        self._learn = self._function(self._update)

    def compute_actions(self, obs: Array, *, explore: bool) -> tuple[Array, dict[str, Array]]:
        if explore and self.global_step < self._config.learning_starts:
            return self._uniform(len(obs)), {}
        return super().compute_actions(obs, explore=explore)

    def learn_on_batch(self, batch: Batch) -> LearnInfo:
        """One update of alpha, actor and critics, all at the parameters as they were."""
        return self._info(*self._learn(*self._arguments(batch)))

    def _shared_update(self, batch: Batch, rows: slice) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        return self._info(*(yield from self._steps(*self._arguments(batch, rows))))

    def _info(self, td_error: torch.Tensor, norm: torch.Tensor, summary: torch.Tensor) -> LearnInfo:
        errors: Array = td_error.cpu().numpy()
        stats = dict(zip(STATS, summary.tolist(), strict=True))
        return LearnInfo({**stats, "grad_norm": float(norm), "lr": self._lr}, errors)

    def _update(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return alone(self._steps(*arguments))

    def _steps(
        self,
        vector: torch.Tensor,
        step: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        target: torch.Tensor,
        lr: torch.Tensor,
        *rows: torch.Tensor,
    ) -> Generator[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Move `vector` and its moments by what the gradient becomes; returns TD errors, its norm and the stats."""
        with self._flat.at(vector) as parameters, self._target_flat.at(target):
            losses = sac_losses(self._network, self._target, Rows(*rows), self._target_entropy)
            slope = gradient(losses.alpha + losses.actor + losses.critics, parameters)
        slope = yield slope
        with torch.no_grad():
            norm = self._adam.descend(vector, Moments(step, mean, square), slope, lr)
        return losses.td_error, norm, losses.stats

    def _uniform(self, count: int) -> Array:
        network = self._network
        if isinstance(network, DiscreteActorCritic):
            return self._rng.integers(network.distribution.size, size=count)
        return self._rng.uniform(-1.0, 1.0, (count, network.noise_size)).astype(np.float32)
