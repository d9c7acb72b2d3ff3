"""Datasets recorded from trained agents, or from chance."""

import logging
from collections.abc import Sequence
from pathlib import Path

from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidInput
from rltrain.models.agents import AgentSpaces, each_its_own
from rltrain.offline.agents import AgentsSummary, prepare_agents
from rltrain.offline.dataset import Summary, prepare
from rltrain.offline.writer import write_npz
from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import AnyBatch, MultiAgentBatch, concat
from rltrain.rollout.parallel_envs import spaces_of
from rltrain.rollout.recording import record
from rltrain.runtime.evaluation import trained_worker


def collect(
    sources: Sequence[Path], env: EnvSpec | None, out: Path, *, steps: int, seed: int, explore: bool
) -> Summary | AgentsSummary:
    """Record whole episodes of each source in turn, equal shares of `steps`, and write them to `out`.

    Args:
        sources: run directories or checkpoints; none for random actions in `env`.

    Raises:
        InvalidInput: sources of several environments, or `out` can't be written.
        RltrainError: see `trained_worker` and `record`.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    parts: list[AnyBatch] = []
    for number, source in enumerate(sources):
        worker, _ = trained_worker(source)
        if env is not None and worker.spec.env != env:
            raise InvalidInput(f"{source} was trained in {worker.spec.env.id}, another environment than {env.id}")
        env = worker.spec.env
        share = steps * (number + 1) // len(sources) - steps * number // len(sources)
        parts.append(record(env, worker.policy, share, seed, explore=explore, source=number))
    if env is None:
        raise InvalidInput("give a run to play, or --env for random actions")
    if not parts:
        parts.append(record(env, None, steps, seed))
    recorded = concat(parts)
    summary = _summary(recorded, env)
    try:
        write_npz(out, recorded)
    except OSError as error:
        raise InvalidInput(f"{out} can't be written: {error.strerror}") from error
    return summary


def _summary(recorded: AnyBatch, env: EnvSpec) -> Summary | AgentsSummary:
    """What whoever reads the dataset will be told."""
    obs, actions = spaces_of(env)
    if not isinstance(recorded, MultiAgentBatch):
        assert isinstance(recorded, Batch)
        return prepare(recorded.columns, obs, actions).summary
    assert isinstance(obs, AgentSpaces)
    assert isinstance(actions, AgentSpaces)
    by_agent = {agent: rows.columns for agent, rows in recorded.policies.items() if rows.count}
    roster = each_its_own(AgentSpaces({agent: obs[agent] for agent in by_agent}), actions)
    return prepare_agents(by_agent, roster, by_step=True).summary
