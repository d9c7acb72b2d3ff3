"""PolicyGroup: several policies, each of which acts for some of an environment's agents and learns from their steps."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

import torch

from rltrain.models.agents import Roster
from rltrain.policies.base import LearnInfo, Minibatches, Policy
from rltrain.policies.sharing import Share
from rltrain.rollout.batch import Batch
from rltrain.rollout.columns import ENV_STEP
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.state import Array, State


class PolicyGroup:
    """What learns in an environment with several agents; batches, errors and states are by policy.

    States have the parts that the policies' own have, so that whoever handles them needn't know that there are several.

    Args:
        policies: by name, as in the roster.
        roster: who has which, and which of them learn.
        by_step: leave each row's env step in what is learnt from, for a buffer that draws whole steps.
    """

    def __init__(self, policies: Mapping[str, Policy], roster: Roster, *, by_step: bool) -> None:
        self.policies = policies
        self.roster = roster
        self._by_step = by_step
        self._learning = {name: policies[name] for name in roster.to_train}

    def postprocess(self, batch: MultiAgentBatch) -> MultiAgentBatch:
        """The rows of the policies that learn, each as its policy learns from them."""
        rows = {name: self._postprocess(policy, batch.policies[name]) for name, policy in self._learning.items()}
        return MultiAgentBatch(rows, batch.count)

    def td_error(self, batch: MultiAgentBatch) -> dict[str, Array] | None:
        found = {name: self.policies[name].td_error(rows) for name, rows in batch.policies.items() if rows.count}
        known = {name: errors for name, errors in found.items() if errors is not None}
        return known if len(known) == len(found) else None

    def learn_on_batch(self, batch: MultiAgentBatch) -> LearnInfo:
        """An update of each policy that has rows."""
        return _joined({name: self.policies[name].learn_on_batch(rows) for name, rows in batch.policies.items()})

    def learn_share(self, batch: MultiAgentBatch, share: Share) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        """As `learn_on_batch`, one policy after the other: the share is of each one's rows."""
        infos: dict[str, LearnInfo] = {}
        for name, rows in batch.policies.items():
            infos[name] = yield from self.policies[name].learn_share(rows, share)
        return _joined(infos)

    def minibatches_of(self, batch: MultiAgentBatch) -> Minibatches:
        return {name: policy.minibatches_of(batch.policies[name]) for name, policy in self._learning.items()}

    def minibatch_sgd(
        self, batch: MultiAgentBatch, *, minibatches: Minibatches | None = None
    ) -> Generator[torch.Tensor, torch.Tensor, LearnInfo]:
        """The policies' updates, one policy's after the other's, so that all ranks average the same one's."""
        counts = self.minibatches_of(batch) if minibatches is None else minibatches
        assert isinstance(counts, Mapping)
        infos: dict[str, LearnInfo] = {}
        for name, policy in self._learning.items():
            if counts[name]:  # none where no rank has rows of it
                infos[name] = yield from policy.minibatch_sgd(batch.policies[name], minibatches=counts[name])
        return _joined(infos)

    def update_target(self) -> None:
        for policy in self._learning.values():
            policy.update_target()

    def set_global_step(self, env_steps: int) -> None:
        for policy in self.policies.values():
            policy.set_global_step(env_steps)

    def set_workers(self, workers: int) -> None:
        for policy in self.policies.values():
            policy.set_workers(workers)

    def get_weights(self) -> State:
        return self._each(lambda policy: policy.get_weights())

    def set_weights(self, weights: State) -> None:
        for name, policy in self.policies.items():
            policy.set_weights(weights[name])

    def get_state(self) -> State:
        return _by_part(self._each(lambda policy: policy.get_state()))

    def set_state(self, state: State) -> None:
        for name, policy in self.policies.items():
            policy.set_state({part: of_policies[name] for part, of_policies in state.items()})

    def learned_state(self) -> State:
        return _by_part(self._each(lambda policy: policy.learned_state()))

    def exploration_state(self) -> dict[str, float]:
        found = self._each(lambda policy: policy.exploration_state())
        return {f"{name}/{key}": value for name, state in found.items() for key, value in state.items()}

    def _each(self, function: Callable[[Policy], Any]) -> dict[str, Any]:
        return {name: function(policy) for name, policy in self.policies.items()}

    def _postprocess(self, policy: Policy, rows: Batch) -> Batch:
        learnt = policy.postprocess(rows)  # a row for each row
        return learnt.with_columns(**{ENV_STEP: rows[ENV_STEP]}) if self._by_step else learnt


def _by_part(states: Mapping[str, State]) -> State:
    """Of states by policy, each part by policy."""
    parts = next(iter(states.values())).keys()
    return {part: {name: state[part] for name, state in states.items()} for part in parts}


def _joined(infos: Mapping[str, LearnInfo]) -> LearnInfo:
    stats = {f"{name}/{key}": value for name, info in infos.items() for key, value in info.stats.items()}
    errors = {name: info.td_error for name, info in infos.items() if info.td_error is not None}
    return LearnInfo(stats, errors or None)
