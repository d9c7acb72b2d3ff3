"""`python -m learn [ROW | ROW:SEED ...]`: train what is not kept yet, and write docs/learning.md from all that is."""

import argparse
import sys
from pathlib import Path
from typing import Final

from learn import curves, report
from learn.results import Kept
from learn.rows import ROOT, ROWS, SEEDS, Choice, choose
from learn.training import RunFailed, train

DOCUMENT: Final = ROOT / "docs" / "learning.md"
BESIDE: Final = ROOT / "docs" / "learning"


def main() -> int:
    """Returns 1 where a run failed, or a median that is whole misses what is wanted."""
    parser = argparse.ArgumentParser(prog="python -m learn", description=__doc__)
    parser.add_argument("runs", nargs="*", help=f"of {', '.join(ROWS)}, all seeds of a row or one as in dqn:2")
    parser.add_argument("--kept", type=Path, default=ROOT / "runs" / "learn", help="where runs are kept")
    parser.add_argument("--report", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    try:
        chosen = choose(arguments.runs)
    except ValueError as error:
        parser.error(str(error))
    kept = Kept(arguments.kept)
    failed = [] if arguments.report else [choice for choice in chosen if not trained(kept, choice)]
    lines = write(kept)
    print(report.table(lines))
    missed = [line.row for line in lines if line.holds is False and line.row in {choice.row for choice in chosen}]
    return 1 if failed or missed else 0


def trained(kept: Kept, choice: Choice) -> bool:
    """Whether it came to its end; how it went is said to stderr."""
    try:
        outcome = train(kept, choice)
    except RunFailed as error:
        print(f"{choice.row}:{choice.seed}: {error}", file=sys.stderr, flush=True)
        return False
    told = ", ".join(f"{score.mean:.1f} ± {score.std:.1f} at {score.steps:,}" for score in outcome.scores)
    print(f"{choice.row}:{choice.seed}: {told}", file=sys.stderr, flush=True)
    return True


def write(kept: Kept) -> list[report.Line]:
    """The document's table, its pictures and the results as JSON."""
    outcomes = kept.all(SEEDS)
    lines = report.lines_of(outcomes)
    BESIDE.mkdir(exist_ok=True)
    pictures = dict.fromkeys(ROWS[outcome.row].picture for outcome in outcomes if outcome.curve)
    for picture in pictures:
        curves.draw(picture, outcomes, BESIDE / f"{picture}.svg")
    (BESIDE / "results.json").write_text(report.to_json(outcomes, lines) + "\n")
    shown = [f"![{picture}](learning/{picture}.svg)" for picture in pictures]
    block = "\n\n".join([report.table(lines), *report.compared(outcomes), *shown])
    DOCUMENT.write_text(report.with_block(DOCUMENT.read_text(), block))
    return lines


if __name__ == "__main__":
    sys.exit(main())
