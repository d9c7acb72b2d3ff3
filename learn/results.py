"""What a run brought, kept as a file: so a table can be made in pieces, and is never made of other manifests' runs."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from learn.rows import ROOT, ROWS, Choice, Row
from rltrain.api.load import load_job


@dataclass(frozen=True)
class Score:
    """A greedy evaluation.

    Attributes:
        steps: the budget that was reached.
        mean, std: of the episodes' returns.
    """

    steps: int
    mean: float
    std: float


@dataclass(frozen=True)
class Outcome:
    """What a row's run with one seed brought so far.

    Attributes:
        recipe: see `recipe_of`.
        scores: one for each budget that was reached, in their order.
        curve: (steps, return) of the reports, or of the evaluations where nothing is sampled.
        comparisons: reports whose ranks were compared, and all; (0, n) where there are no ranks.
    """

    row: str
    seed: int
    recipe: str
    scores: tuple[Score, ...]
    curve: tuple[tuple[int, float], ...]
    comparisons: tuple[int, int] = (0, 0)


def recipe_of(row: Row) -> str:
    """A digest of what a row's runs are made from: manifest, changes and dataset. A manifest's remarks don't count."""
    job = load_job(ROOT / row.manifest, list(row.changes))
    # As it is given: defaults of new keys leave what was measured as it is.
    given = job.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
    del given["stop"]
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode())
    dataset = given["config"].get("input")
    if dataset is not None:
        digest.update((ROOT / dataset).read_bytes())
    return digest.hexdigest()[:16]


class Kept:
    """Outcomes as files in a folder, beside their runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run_directory(self, choice: Choice) -> Path:
        """Where `rltrain run` writes."""
        return self._folder / f"{choice.row}-{choice.seed}"

    def get(self, choice: Choice) -> Outcome | None:
        """What is kept of a run of today's recipe."""
        path = self._path(choice)
        if not path.exists():
            return None
        outcome = from_json(json.loads(path.read_text()))
        return outcome if outcome.recipe == recipe_of(ROWS[choice.row]) else None

    def put(self, choice: Choice, outcome: Outcome) -> None:
        """Keep an outcome in place of an earlier one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._path(choice).with_suffix(".new")
        temporary.write_text(json.dumps(asdict(outcome)))
        temporary.replace(self._path(choice))

    def all(self, seeds: Iterable[int]) -> list[Outcome]:
        """Of every row, in the rows' order."""
        found = [self.get(Choice(name, seed)) for name in ROWS for seed in seeds]
        return [outcome for outcome in found if outcome is not None]

    def _path(self, choice: Choice) -> Path:
        return self._folder / f"{choice.row}-{choice.seed}.json"


def from_json(loaded: dict[str, Any]) -> Outcome:
    """The inverse of `asdict`."""
    scores = tuple(Score(**score) for score in loaded["scores"])
    curve = tuple((int(steps), float(value)) for steps, value in loaded["curve"])
    compared, reports = loaded["comparisons"]
    return Outcome(loaded["row"], loaded["seed"], loaded["recipe"], scores, curve, (compared, reports))
