"""Networks of soft actor-critics: an actor, two critics as one batch of matrices, and alpha."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from gymnasium import spaces
from torch import nn

from rltrain.api.config import ModelConfig, SoftConfig
from rltrain.models.distributions import Categorical, SquashedGaussian
from rltrain.models.mlp import Activation, mlp
from rltrain.models.spaces import ObsEncoder, Space


class Choice(NamedTuple):
    """What an actor would do at n observations, as k alternatives each; expectations are sums over them.

    Attributes:
        probs, logp: float32 (n, k): one drawn action has probability 1 here; else every discrete action has its own.
        actions: float32 (n, components) of drawn actions; None where the alternatives are all actions there are.
    """

    probs: torch.Tensor
    logp: torch.Tensor
    actions: torch.Tensor | None


class TwinMLP(nn.Module):
    """Two multilayer perceptrons that share nothing, each layer of both computed as one batched product.

    float32 (n, inputs) -> float32 (2, n, outputs). Each starts as `nn.Linear` does.
    """

    def __init__(self, inputs: int, hiddens: Sequence[int], activation: Activation, outputs: int) -> None:
        super().__init__()
        self._activation = torch.relu if activation == "relu" else torch.tanh
        self._layers = len(hiddens) + 1
        for layer, (size_in, size_out) in enumerate(pairwise((inputs, *hiddens, outputs))):
            bound = 1 / math.sqrt(size_in)
            weight, bias = torch.empty(2, size_in, size_out), torch.empty(2, 1, size_out)
            self.register_parameter(f"weight{layer}", nn.Parameter(weight.uniform_(-bound, bound)))
            self.register_parameter(f"bias{layer}", nn.Parameter(bias.uniform_(-bound, bound)))

    def forward(self, x: torch.Tensor, *, frozen: bool = False) -> torch.Tensor:
        """`frozen`: gradients reach `x`, but not the parameters."""
        hidden = x.expand(2, *x.shape)
        for layer in range(self._layers):
            weight, bias = getattr(self, f"weight{layer}"), getattr(self, f"bias{layer}")
            if frozen:
                weight, bias = weight.detach(), bias.detach()
            hidden = torch.baddbmm(bias, hidden, weight)
            if layer < self._layers - 1:
                hidden = self._activation(hidden)
        return hidden


class Multiplier(nn.Module):
    """A positive number that is learnt by its logarithm."""

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(initial)))


class SoftActorCritic(nn.Module):
    """Base of the continuous and the discrete kind.

    Attributes:
        noise_size: columns of noise that `choose` needs for an observation.
        target_entropy: what alpha steers to where the user gives nothing else.
    """

    distribution: Categorical | SquashedGaussian
    noise_size: int
    target_entropy: float

    def __init__(self, options: SoftConfig, model: ModelConfig, obs_space: Space, outputs: int) -> None:
        super().__init__()
        self.encoder = ObsEncoder(obs_space, model.conv_filters)
        self.alpha = Multiplier(options.initial_alpha)
        self.actor = mlp(self.encoder.size, model.fcnet_hiddens, model.fcnet_activation, outputs)
        self.critics: TwinMLP

    def choose(self, x: torch.Tensor, noise: torch.Tensor) -> Choice:
        """The policy at encoded observations (n, size), with standard normal noise (n, noise_size)."""
        raise NotImplementedError

    def q_of(self, critics: TwinMLP, x: torch.Tensor, choice: Choice, *, frozen: bool = False) -> torch.Tensor:
        """Values of a choice's alternatives by the own or the target's critics, float32 (2, n, k)."""
        raise NotImplementedError

    def q_taken(self, x: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Values of stored actions, float32 (2, n)."""
        raise NotImplementedError


class ContinuousActorCritic(SoftActorCritic):
    """A tanh-squashed Gaussian over actions in [-1, 1], and Q(s, a)."""

    def __init__(self, options: SoftConfig, model: ModelConfig, obs_space: Space, action_space: spaces.Box) -> None:
        components = math.prod(action_space.shape)
        super().__init__(options, model, obs_space, 2 * components)
        self.distribution = self.squashed = SquashedGaussian(components)
        self.noise_size = components
        self.target_entropy = -float(components)
        self.critics = TwinMLP(self.encoder.size + components, model.fcnet_hiddens, model.fcnet_activation, 1)

    def choose(self, x: torch.Tensor, noise: torch.Tensor) -> Choice:
        actions, logp = self.squashed.transform(self.actor(x), noise)
        logp = logp.unsqueeze(1)
        return Choice(torch.ones_like(logp), logp, actions)

    def q_of(self, critics: TwinMLP, x: torch.Tensor, choice: Choice, *, frozen: bool = False) -> torch.Tensor:
        assert choice.actions is not None
        q: torch.Tensor = critics(torch.cat([x, choice.actions], dim=1), frozen=frozen)
        return q

    def q_taken(self, x: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        q: torch.Tensor = self.critics(torch.cat([x, actions], dim=1)).squeeze(2)
        return q


class ConservativeActorCritic(ContinuousActorCritic):
    """With the factor of CQL's penalty, which only its Lagrangian form learns."""

    def __init__(self, options: SoftConfig, model: ModelConfig, obs_space: Space, action_space: spaces.Box) -> None:
        super().__init__(options, model, obs_space, action_space)
        self.penalty_factor = Multiplier(1.0)


class DiscreteActorCritic(SoftActorCritic):
    """A softmax over n actions, and Q(s, .) of all of them (Christodoulou 2019): expectations need no drawing."""

    def __init__(
        self, options: SoftConfig, model: ModelConfig, obs_space: Space, action_space: spaces.Discrete
    ) -> None:
        actions = int(action_space.n)
        super().__init__(options, model, obs_space, actions)
        self.distribution = Categorical([actions], scalar=True)
        self.noise_size = 0
        self.target_entropy = 0.98 * math.log(actions)
        self.critics = TwinMLP(self.encoder.size, model.fcnet_hiddens, model.fcnet_activation, actions)

    def choose(self, x: torch.Tensor, noise: torch.Tensor) -> Choice:
        logp = self.actor(x).log_softmax(dim=1)
        return Choice(logp.exp(), logp, None)

    def q_of(self, critics: TwinMLP, x: torch.Tensor, choice: Choice, *, frozen: bool = False) -> torch.Tensor:
        q: torch.Tensor = critics(x, frozen=frozen)
        return q

    def q_taken(self, x: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        index = actions.view(1, -1, 1).expand(2, -1, 1)
        q: torch.Tensor = self.critics(x).gather(2, index).squeeze(2)
        return q
