"""From outcomes to a table. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from learn.results import Outcome
from learn.rows import ROWS, SEEDS, Want

BEGIN, END = "<!-- written by make learn -->", "<!-- until here -->"


@dataclass(frozen=True)
class Line:
    """A want and what was measured for it.

    Attributes:
        returns: by seed; those that haven't run are missing.
        holds: None where seeds are missing, or what it is compared with is.
    """

    row: str
    want: Want
    returns: dict[int, float]
    holds: bool | None

    @property
    def median(self) -> float | None:
        return median(self.returns.values()) if self.returns else None


def lines_of(outcomes: Sequence[Outcome], seeds: Sequence[int] = SEEDS) -> list[Line]:
    """One for each want of each row, measured or not."""
    returns = {(name, want.steps): _returns(outcomes, name, want, seeds) for name, want in _wants()}
    lines: list[Line] = []
    for name, want in _wants():
        found = returns[name, want.steps]
        rival = returns[want.worse_than, want.steps] if want.worse_than else found
        whole = len(found) == len(seeds) and len(rival) == len(seeds)
        holds = _holds(want, median(found.values()), median(rival.values())) if whole else None
        lines.append(Line(name, want, found, holds))
    return lines


def table(lines: Sequence[Line], seeds: Sequence[int] = SEEDS) -> str:
    """As Markdown."""
    titles = ["what", "steps", "wanted", "median", *(f"seed {seed}" for seed in seeds), "holds", "command"]
    rows = [titles, ["---"] * len(titles)]
    for line in lines:
        row = ROWS[line.row]
        steps = f"{line.want.steps:,}{' trained' * (row.counted == 'trainedSteps')}"
        returns = [_number(line.returns.get(seed)) for seed in seeds]
        holds = {True: "yes", False: "**no**", None: "not all run" if line.returns else "not run"}[line.holds]
        about = f"[{row.about}](../{row.manifest}){''.join(f', `{change}`' for change in row.changes)}"
        command = f"`make learn ARGS={line.row}`"
        rows.append([about, steps, wanted(line.want), _number(line.median), *returns, holds, command])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def wanted(want: Want) -> str:
    """A want in words."""
    if want.at_least is not None:
        return f"≥ {want.at_least:g}"
    return f"< {want.below:g}" if want.below is not None else f"< `{want.worse_than}`'s"


def compared(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence for each row of several ranks: how often they were compared. A run whose ranks differ fails."""
    sentences: list[str] = []
    for name in ROWS:
        pairs = [outcome.comparisons for outcome in outcomes if outcome.row == name and outcome.comparisons[0]]
        if pairs:
            times, reports = (sum(column) for column in zip(*pairs, strict=True))
            sentences.append(
                f"`{name}`: parameters and optimizer of all ranks were compared bit by bit after {times:,} of "
                f"{reports:,} reports, and were the same."
            )
    return sentences


def to_json(outcomes: Sequence[Outcome], lines: Sequence[Line]) -> str:
    """For machines; the curves are in it too."""
    told = [{**asdict(line), "median": line.median} for line in lines]
    return json.dumps({"lines": told, "outcomes": [asdict(outcome) for outcome in outcomes]})


def with_block(document: str, block: str) -> str:
    """A document whose part between the marks is replaced. Raises ValueError where it has none."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no part between {BEGIN} and {END}")
    return f"{before}{begin}\n{block}\n{end}{after}"


def _wants() -> Iterator[tuple[str, Want]]:
    for name, row in ROWS.items():
        for want in row.wants:
            yield name, want


def _returns(outcomes: Sequence[Outcome], row: str, want: Want, seeds: Sequence[int]) -> dict[int, float]:
    return {
        outcome.seed: score.mean
        for outcome in outcomes
        if outcome.row == row and outcome.seed in seeds
        for score in outcome.scores
        if score.steps == want.steps
    }


def _holds(want: Want, found: float, rival: float) -> bool:
    if want.at_least is not None:
        return found >= want.at_least
    return found < want.below if want.below is not None else found < rival


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
