"""Datasets recorded from trained agents, or from chance."""

import logging
from collections.abc import Sequence
from pathlib import Path

from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidInput
from rltrain.offline.dataset import Summary, prepare
from rltrain.offline.writer import write_npz
from rltrain.policies.base import Policy
from rltrain.rollout.batch import Batch
from rltrain.rollout.environments import make_env
from rltrain.rollout.recording import record
from rltrain.runtime.evaluation import trained_worker


def collect(
    sources: Sequence[Path], env: EnvSpec | None, out: Path, *, steps: int, seed: int, explore: bool
) -> Summary:
    """Record whole episodes of each source in turn, equal shares of `steps`, and write them to `out`.

    Args:
        sources: run directories or checkpoints; none for random actions in `env`.

    Raises:
        InvalidInput: sources of several environments, or `out` can't be written.
        RltrainError: see `trained_worker` and `record`.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    parts: list[Batch] = []
    for number, source in enumerate(sources):
        worker, _ = trained_worker(source)
        if env is not None and worker.spec.env != env:
            raise InvalidInput(f"{source} was trained in {worker.spec.env.id}, another environment than {env.id}")
        if not isinstance(worker.policy, Policy):
            raise InvalidInput(f"{source} was trained with several agents, and a dataset holds the steps of one")
        env = worker.spec.env
        share = steps * (number + 1) // len(sources) - steps * number // len(sources)
        parts.append(record(env, worker.policy, share, seed, explore=explore, source=number))
    if env is None:
        raise InvalidInput("give a run to play, or --env for random actions")
    if not parts:
        parts.append(record(env, None, steps, seed))
    batch = Batch.concat(parts)
    probe = make_env(env)
    summary = prepare(batch.columns, probe.observation_space, probe.action_space).summary
    probe.close()
    try:
        write_npz(out, batch)
    except OSError as error:
        raise InvalidInput(f"{out} can't be written: {error.strerror}") from error
    return summary
