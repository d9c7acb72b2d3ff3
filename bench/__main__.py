"""`python -m bench [ROW ...]`: measure rows, contenders in turn, and tell medians, spread and ratios."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report import Figures, report, table
from bench.rows import ROOT, ROWS, Contender

TIMEOUT_SECONDS = 900


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("rows", nargs="*", default=list(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender")
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "results.json")
    arguments = parser.parse_args()
    unknown = set(arguments.rows) - ROWS.keys()
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    figures = measure(arguments.rows, arguments.repeats)
    rows = report(figures)
    machine = {"cpus": os.cpu_count(), "processor": platform.processor(), "load": os.getloadavg()[0]}
    arguments.json.parent.mkdir(exist_ok=True)
    arguments.json.write_text(json.dumps({"machine": machine, "repeats": arguments.repeats, "rows": rows}, indent=2))
    print(table(rows))
    if not all(row["within"] for row in rows):
        sys.exit(1)


def measure(names: Sequence[str], repeats: int) -> Figures:
    """Figures of each row's contenders; one run of each in turn, so that all meet the same machine."""
    figures: Figures = {}
    for name in names:
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        runs = min(repeats, ROWS[name].repeats)
        for repeat in range(runs):
            for label, contender in ROWS[name].contenders.items():
                result = run(contender)
                print(f"{name} {repeat + 1}/{runs} {label}: {result}", file=sys.stderr, flush=True)
                if result is not None:
                    found[label].append(result)
        figures[name] = found
    return figures


def run(contender: Contender) -> dict[str, Any] | None:
    """One run; None, said to stderr, where it fails or isn't installed."""
    command = contender.command()
    if not Path(command[0]).exists():
        print(f"{command[0]} isn't there", file=sys.stderr)
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        print(f"{command} took longer than {TIMEOUT_SECONDS} s", file=sys.stderr)
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        print(f"{command} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(lines[-1])
    return result


if __name__ == "__main__":
    main()
