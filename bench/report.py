"""From figures to a table: medians, spread, and ratios beside the range that is wanted of each."""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, TypeAlias

from bench.rows import ROOT, ROWS, Ratio

Figures: TypeAlias = dict[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Results of every run, by row and contender."""

RANGES = ROOT / "bench" / "ranges.json"
"""Lowest and highest wanted value of each ratio, by row; null is no bound."""


def report(figures: Figures, ratios: Mapping[str, Sequence[Ratio]] | None = None) -> list[dict[str, Any]]:
    """One entry a ratio: its median over repeats, both sides' medians and spread, the range, and whether it holds.

    Args:
        figures: what was measured.
        ratios: those of each row; by default the rows' own.
    """
    ranges: dict[str, dict[str, list[float | None]]] = json.loads(RANGES.read_text())
    entries: list[dict[str, Any]] = []
    for name, found in figures.items():
        for ratio in ROWS[name].ratios if ratios is None else ratios[name]:
            of, to = values(found, ratio.of), values(found, ratio.to)
            pairs = of if ratio.to is None else [a / b for a, b in zip(of, to, strict=False)]
            low, high = ranges.get(name, {}).get(ratio.name, [None, None])
            value = median(pairs) if pairs else None
            within = value is not None and (low is None or value >= low) and (high is None or value <= high)
            sides = {"of": spread(of), "to": spread(to)}
            entries.append(
                {"row": name, "ratio": ratio.name, "value": value, "range": [low, high], "within": within, **sides}
            )
    return entries


def values(found: Mapping[str, Sequence[Mapping[str, Any]]], side: str | None) -> list[float]:
    """A figure of each run of a contender; `steps_per_s` unless another is named."""
    if side is None:
        return []
    label, _, figure = side.partition(":")
    return [float(result[figure or "steps_per_s"]) for result in found.get(label, ())]


def spread(numbers: Sequence[float]) -> list[float] | None:
    """Lowest, median and highest."""
    return [min(numbers), median(numbers), max(numbers)] if numbers else None


def table(entries: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown."""
    lines = ["| row | ratio | median | wanted | holds | measured (low, median, high) |", "|---|---|---|---|---|---|"]
    for entry in entries:
        low, high = entry["range"]
        bounds = [f"{sign} {bound:g}" for sign, bound in (("≥", low), ("≤", high)) if bound is not None]
        wanted = " ".join(bounds) or "-"
        value = "-" if entry["value"] is None else _number(entry["value"])
        sides = " / ".join(", ".join(map(_number, side)) for side in (entry["of"], entry["to"]) if side)
        holds = "yes" if entry["within"] else "no"
        lines.append(f"| {entry['row']} | {entry['ratio']} | {value} | {wanted} | {holds} | {sides} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
