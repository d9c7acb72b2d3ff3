"""Returns over steps, as pictures."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from learn.results import Outcome
from learn.rows import ROWS

POINTS = 150
"""Of a curve; more of them can't be told apart."""
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "learn", "path.simplify_threshold": 1.0, "font.size": 9})


def draw(picture: str, outcomes: Sequence[Outcome], path: Path) -> None:
    """The curves of a picture's rows, a line for each seed and a colour for each row, and what is wanted."""
    figure = Figure(figsize=(5, 2.6), layout="constrained")
    axes = figure.subplots()
    names = [name for name, row in ROWS.items() if row.picture == picture]
    for number, name in enumerate(names):
        drawn = [outcome for outcome in outcomes if outcome.row == name and outcome.curve]
        for outcome in drawn:
            steps, returns = zip(*thinned(outcome.curve), strict=True)
            label = ROWS[name].about if outcome is drawn[0] else None
            axes.plot(steps, returns, color=f"C{number}", linewidth=0.9, alpha=0.8, label=label)
        for want in ROWS[name].wants:
            if want.at_least is not None:
                axes.plot(want.steps, want.at_least, marker="_", markersize=14, color="black")
    axes.set_xlabel("trained steps" if ROWS[names[0]].counted == "trainedSteps" else "environment steps")
    axes.set_ylabel("return")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def thinned(curve: Sequence[tuple[int, float]], points: int = POINTS) -> list[tuple[int, float]]:
    """Means of about as many consecutive pieces, each at its last step."""
    size = -(-len(curve) // points)
    pieces = [curve[start : start + size] for start in range(0, len(curve), size)]
    return [(piece[-1][0], sum(value for _, value in piece) / len(piece)) for piece in pieces]
