"""A row's run with one seed, by the command line that users have."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from learn.results import Kept, Outcome, Score, recipe_of
from learn.rows import EPISODES, ROOT, ROWS, Choice, Row, Want

RLTRAIN: Final = str(Path(sys.executable).parent / "rltrain")
EVALUATION: Final = ("--episodes", str(EPISODES), "--seed", "0")


class RunFailed(Exception):
    """What a command said before it failed."""


def train(kept: Kept, choice: Choice) -> Outcome:
    """Train and evaluate until the row's last budget, going on where an earlier call left off.

    Raises:
        RunFailed: the run or its evaluation did.
    """
    row, directory = ROWS[choice.row], kept.run_directory(choice)
    recipe = recipe_of(row)
    outcome = kept.get(choice)
    if outcome is None:
        shutil.rmtree(directory, ignore_errors=True)
        outcome = Outcome(choice.row, choice.seed, recipe, (), ())
        kept.put(choice, outcome)
    for want in row.wants[len(outcome.scores) :]:
        if not is_trained(directory, want):
            execute([RLTRAIN, *run_command(row, choice.seed, want, directory), "--resume"])
        score = evaluate(directory, want)
        lines = [json.loads(line) for line in (directory / "results.jsonl").read_text().splitlines()]
        compared = sum("rank_hashes" in line for line in lines)
        curve = tuple(points(lines))
        outcome = Outcome(choice.row, choice.seed, recipe, (*outcome.scores, score), curve, (compared, len(lines)))
        kept.put(choice, outcome)
    return outcome


def is_trained(directory: Path, want: Want) -> bool:
    """Whether the run came to the budget, and a call was ended before it could evaluate."""
    finished = directory / "finished.json"
    if not finished.exists():
        return False
    ended = json.loads(finished.read_text())
    steps: int = ended["env_steps"] or ended["trained_steps"]
    return ended["state"] == "Succeeded" and steps >= want.steps


def run_command(row: Row, seed: int, want: Want, directory: Path) -> list[str]:
    """Arguments of `rltrain`: the manifest as it stands, but for seed and budget."""
    sets = (f"seed={seed}", f"stop={{{row.counted}: {want.steps}}}", *row.changes)
    return ["run", row.manifest, "--out", str(directory), *(part for each in sets for part in ("--set", each))]


def evaluate(directory: Path, want: Want) -> Score:
    """Greedy episodes with the newest checkpoint."""
    found = json.loads(execute([RLTRAIN, "evaluate", str(directory), *EVALUATION, "--json"]).splitlines()[-1])
    return Score(want.steps, found["episode_return_mean"], found["episode_return_std"])


def points(lines: Sequence[dict[str, Any]]) -> Iterator[tuple[int, float]]:
    """Steps and returns of a run's reports; of those with an evaluation, where nothing is sampled."""
    for line in lines:
        told = line if line["env_steps"] else line.get("evaluation", {})
        if told.get("episode_return_mean") is not None:
            yield told["env_steps"] or told["trained_steps"], told["episode_return_mean"]


def execute(command: Sequence[str]) -> str:
    """Run to its end; returns what it printed.

    Debug mode compares DD-PPO's ranks after each iteration. One thread a process: a result doesn't depend on the cores.
    """
    environment = {**os.environ, "RLTRAIN_DEBUG": "1", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunFailed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout
