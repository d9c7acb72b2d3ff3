"""A checkpoint's policy, played greedily."""

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rltrain.api.errors import CheckpointUnusable, InvalidManifest
from rltrain.api.load import load_text
from rltrain.rollout.evaluation import evaluate
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.checkpoint import MARKER, find_checkpoint
from rltrain.runtime.observers import finite


@dataclass(frozen=True)
class Scores:
    """Returns of some episodes; `std` is that of the episodes, not of their mean."""

    mean: float
    std: float
    min: float
    max: float
    length_mean: float
    episodes: int
    seed: int
    env: str
    env_steps: int
    checkpoint: str

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        scores: dict[str, Any] = finite(asdict(self))
        return scores


def evaluate_checkpoint(path: Path, episodes: int, seed: int) -> Scores:
    """Play episodes with the policy of a checkpoint, or of a run directory's newest whole one.

    Raises:
        CheckpointUnusable: there is none, or what is in it doesn't fit together.
        UnknownEnvironment, EnvironmentFailed: see `make_env`.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    checkpoint = find_checkpoint(path)
    try:
        spec = load_text(json.dumps(checkpoint.summary.job), source=f"{checkpoint.path / MARKER}").job.spec
    except InvalidManifest as error:
        raise CheckpointUnusable(f"the manifest kept in a checkpoint isn't valid for this version:\n{error}") from error
    # As if others sampled: this worker then makes no environments of its own.
    worker = RolloutWorker(WorkerSpec(spec.plan, spec.env, spec.config, spec.seed, num_workers=1))
    workers = checkpoint.read("workers")
    try:
        assert workers is not None
        learned = workers["learned"] if "learned" in workers else workers["local"]["policy"]
        worker.set_weights(learned["weights"])
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointUnusable(f"{checkpoint.path} has no policy that fits its manifest: {error!r}") from error
    records = list(evaluate(worker.policy, spec.env, episodes, seed))
    returns = np.array([record.return_ for record in records])
    return Scores(
        mean=float(returns.mean()),
        std=float(returns.std()),
        min=float(returns.min()),
        max=float(returns.max()),
        length_mean=float(np.mean([record.length for record in records])),
        episodes=episodes,
        seed=seed,
        env=spec.env.id,
        env_steps=checkpoint.summary.env_steps,
        checkpoint=str(checkpoint.path),
    )
