"""Recorded transitions of several agents made ready to learn from, by the policies that they are to have."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rltrain.models.agents import Roster
from rltrain.offline.dataset import BadDataset, Dataset, Summary, prepare
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.state import Array


@dataclass(frozen=True)
class AgentsSummary:
    """What a dataset holds of each agent; of those without a step, nothing."""

    agents: Mapping[str, Summary]

    def __str__(self) -> str:
        return "; ".join(f"{agent}: {summary}" for agent, summary in self.agents.items())


@dataclass(frozen=True)
class AgentsDataset:
    """Transitions of several agents ready to learn from.

    Attributes:
        batch: of each policy that learns its agents' rows, see `Dataset`.
        warnings: sentences on what looks wrong.
    """

    batch: MultiAgentBatch
    summary: AgentsSummary
    warnings: tuple[str, ...]


def prepare_agents(columns: Mapping[str, Mapping[str, Array]], roster: Roster, *, by_step: bool) -> AgentsDataset:
    """As `prepare`, of each agent whose policy learns.

    Args:
        columns: by agent. Those who have none of the policies that learn don't matter.
        by_step: rows keep ENV_STEP, by which whole env steps are drawn, counted from 0 without gaps.

    Raises:
        BadDataset: see `prepare`; or there is an agent, or a policy, without data.
    """
    found: dict[str, Dataset] = {}
    rows: dict[str, Batch] = {}
    for policy in roster.to_train:
        for agent in roster.agents[policy]:
            if agent not in columns:
                raise BadDataset(f"it has no agent {agent!r}, only {', '.join(columns) or 'none'}")
            if len(columns[agent].get(c.OBS, (0,))):
                found[agent] = _prepared(agent, columns[agent], roster, policy)
        own = [found[agent].batch for agent in roster.agents[policy] if agent in found]
        if not own:
            agents = ", ".join(roster.agents[policy])
            raise BadDataset(f"it holds no transitions of {agents}, from which policy {policy!r} is to learn")
        rows[policy] = Batch.concat([_apart(each, number, len(own)) for number, each in enumerate(own)])
    if by_step:
        numbers = {agent: _env_steps(agent, columns[agent], found[agent]) for agent in found}
        by_policy = {
            policy: np.concatenate([numbers[agent] for agent in roster.agents[policy] if agent in found])
            for policy in rows
        }
        different, places = np.unique(np.concatenate(list(by_policy.values())), return_inverse=True)
        count = len(different)
        parts = np.split(places, np.cumsum([each.count for each in rows.values()])[:-1])
        rows = {name: rows[name].with_columns(**{c.ENV_STEP: part}) for name, part in zip(rows, parts, strict=True)}
    else:
        count = max(each.batch.count for each in found.values())  # no env step has two rows of an agent
    return AgentsDataset(
        MultiAgentBatch(rows, count),
        AgentsSummary({agent: each.summary for agent, each in found.items()}),
        tuple(f"agent {agent}: {warning}" for agent, each in found.items() for warning in each.warnings),
    )


def _prepared(agent: str, columns: Mapping[str, Array], roster: Roster, policy: str) -> Dataset:
    try:
        return prepare(columns, roster.obs_spaces[policy], roster.action_spaces[policy])
    except BadDataset as error:
        raise BadDataset(f"of agent {agent!r}, {error}") from error


def _apart(rows: Batch, number: int, count: int) -> Batch:
    """An agent's rows, with episodes that have other numbers than those of the policy's other agents."""
    return rows.with_columns(**{c.ENV_ID: rows[c.ENV_ID] * count + number})


def _env_steps(agent: str, columns: Mapping[str, Array], its: Dataset) -> Array:
    steps = columns.get(c.ENV_STEP)
    if steps is None:
        raise BadDataset(f"agent {agent!r} has no column {c.ENV_STEP!r}, by which replay_mode lockstep goes")
    if steps.shape != (its.batch.count,) or steps.dtype.kind not in "iu" or len(np.unique(steps)) < len(steps):
        raise BadDataset(f"of agent {agent!r}, {c.ENV_STEP} must be a whole number a row, and another in each")
    return steps
