"""A checkpoint's policy, played greedily."""

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rltrain.api.errors import CheckpointUnusable, InvalidInput, InvalidManifest
from rltrain.api.finite import finite
from rltrain.api.load import load_text
from rltrain.api.nearest import question
from rltrain.rollout.collector import EpisodeRecord
from rltrain.rollout.evaluation import Scores, Watch, evaluate
from rltrain.rollout.filming import filmed, frames_a_second
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.checkpoint import MARKER, Checkpoint
from rltrain.runtime.checkpoint_store import find_checkpoint
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.video import Film
from rltrain.state import Array


@dataclass(frozen=True)
class Evaluated:
    """How well a checkpoint's policy plays, and which that is."""

    scores: Scores
    seed: int
    env: str
    env_steps: int
    checkpoint: str

    def to_json(self) -> dict[str, Any]:
        """For machines: null for what isn't a number."""
        told = asdict(self)
        flat: dict[str, Any] = finite({**told.pop("scores"), **told})
        return flat


def trained_worker(path: Path, *, best: bool = False) -> tuple[RolloutWorker, Checkpoint]:
    """A worker with the policy of a checkpoint, or of a run directory's newest or best one, as it acted there.

    Raises:
        InvalidInput: there is no run and no checkpoint at the path.
        CheckpointUnusable: the run has none yet, or what is in it doesn't fit together.
        UnknownEnvironment, EnvironmentFailed: see `make_env`.
    """
    checkpoint = _checkpoint_at(path, best)
    try:
        spec = load_text(json.dumps(checkpoint.summary.job), source=f"{checkpoint.path / MARKER}").job.spec
    except InvalidManifest as error:
        raise CheckpointUnusable(f"the manifest kept in a checkpoint isn't valid for this version:\n{error}") from error
    # As if others sampled: this worker then makes no environments of its own.
    worker = RolloutWorker(WorkerSpec(spec.base, spec.env, spec.config, spec.seed, num_workers=1))
    try:
        worker.set_weights(learned_weights(checkpoint))
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointUnusable(f"{checkpoint.path} has no policy that fits its manifest: {error!r}") from error
    worker.set_global_step(checkpoint.summary.steps)
    return worker, checkpoint


def learned_weights(checkpoint: Checkpoint) -> dict[str, Array]:
    """Those of the policy that learns, whoever has it. Raises CheckpointUnusable, and what comes of an odd state."""
    workers, learner = checkpoint.read("workers"), checkpoint.read("learner")
    assert workers is not None
    of_workers = workers["learned"] if "learned" in workers else workers["local"]["policy"]
    weights: dict[str, Array] = (of_workers if learner is None else learner["policy"])["weights"]
    return weights


def evaluate_checkpoint(
    path: Path,
    episodes: int,
    seed: int,
    watch: Watch | None = None,
    *,
    best: bool = False,
    video: Path | None = None,
) -> Evaluated:
    """Play episodes with the policy of a checkpoint, or of a run directory's newest whole one or best one.

    Args:
        video: where a film of the first episode goes.

    Raises:
        RltrainError: see `trained_worker`, `Film` and `frames_a_second`.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    if video is None:
        worker, checkpoint = trained_worker(path, best=best)
        records = evaluate(worker.policy, worker.spec.env, episodes, seed, watch=watch)
    else:
        with Film(video) as film:
            worker, checkpoint = trained_worker(path, best=best)
            records = _evaluate_on_film(worker, film, episodes, seed, watch)
    return Evaluated(
        Scores.of(records),
        seed=seed,
        env=worker.spec.env.id,
        env_steps=checkpoint.summary.env_steps,
        checkpoint=str(checkpoint.path),
    )


def _evaluate_on_film(
    worker: RolloutWorker, film: Film, episodes: int, seed: int, watch: Watch | None
) -> list[EpisodeRecord]:
    """The first episode on film, and the others after it: who plays which makes no difference."""
    env = worker.spec.env
    film.begin(frames_a_second(env))
    records = evaluate(worker.policy, filmed(env, film.add), 1, seed)
    if episodes > 1:
        records += evaluate(worker.policy, env, episodes - 1, seed, first=1, watch=watch)
    return records


def _checkpoint_at(path: Path, best: bool) -> Checkpoint:
    try:
        if not path.exists():
            raise InvalidInput(f"there is no {path}: give a run directory, or one of its checkpoints")
        if not path.is_dir() or not (_is_run(path) or _is_checkpoint(path)):
            what = "holds no run and is no checkpoint" if path.is_dir() else "is a file"
            near = next(_runs_near(path), None)
            hint = f" ({question(str(near))})" if near is not None else ""
            raise InvalidInput(f"{path} {what}{hint}: give a run directory, or one of its checkpoints")
    except OSError as error:
        raise InvalidInput(f"can't read {path}: {error.strerror}") from error
    if _is_run(path) and not RunDirectory(path).checkpoints:
        raise CheckpointUnusable(
            f"no checkpoint yet in {path}: the run saves one every spec.checkpoint.everySeconds, at its end and when "
            "it is interrupted; try again then"
        )
    return find_checkpoint(path, best=best)


def _is_run(path: Path) -> bool:
    return RunDirectory(path).attempts.is_dir() or (path / "checkpoints").is_dir()


def _is_checkpoint(path: Path) -> bool:
    """Whether it is one, whole or not."""
    return (path / MARKER).exists() or path.absolute().parent.name == "checkpoints"


def _runs_near(path: Path) -> Iterator[Path]:
    """The run that a path is inside of, or runs in a folder, newest first."""
    yield from (folder for folder in path.parents[:2] if _is_run(folder))
    if path.is_dir():
        runs = [folder for folder in path.iterdir() if _is_run(folder)]
        yield from sorted(runs, key=lambda folder: folder.stat().st_mtime, reverse=True)
