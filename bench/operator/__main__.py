"""`python -m bench.operator`: make many jobs, contenders in turn, and tell medians, spread and ratios."""

import argparse
import json
import os
import platform
import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.operator.contenders import Contender, KubeRay, Ours, definition_sizes
from bench.operator.ratios import DEFINITIONS, ratios
from bench.operator.run import Size, Turn
from bench.operator.running import Broken
from bench.report import Figures, report, table
from bench.rows import ROOT
from testbed.cluster import alone
from testbed.shell import TestbedError

FOLDER = ROOT / ".bench" / "operator"


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    # As Ctrl-C does, so that all that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    FOLDER.mkdir(parents=True, exist_ok=True)
    contenders: dict[str, Contender] = {"ours": Ours(arguments.profile, tuple(arguments.operator.split()))}
    if arguments.peer:
        contenders["kuberay"] = KubeRay(arguments.concurrency)
    try:
        with alone():
            figures = measure(arguments, contenders)
    except (TestbedError, KeyboardInterrupt) as error:
        sys.exit(f"bench.operator: {error or 'interrupted'}")
    figures[DEFINITIONS] = {"ours": [definition_sizes()]}
    rows = report(figures, {name: ratios(name) for name in figures})
    machine = {"cpus": os.cpu_count(), "processor": platform.processor(), "load": os.getloadavg()[0]}
    result = {"machine": machine, "repeats": arguments.repeats, "rows": rows, "figures": figures}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=2))
    print(table(rows))
    if not all(row["within"] for row in rows):
        sys.exit(1)


def measure(arguments: argparse.Namespace, contenders: dict[str, Contender]) -> Figures:
    """Figures of each size's contenders; one turn of each after the other, so that all meet the same machine.

    Who was last is first in the next repeat.
    """
    figures: Figures = {}
    for size in arguments.sizes:
        turn = Turn(size, arguments.steady, arguments.progress, arguments.limit, FOLDER)
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for repeat in range(arguments.repeats):
            for label, contender in list(contenders.items())[:: -1 if repeat % 2 else 1]:
                load = os.getloadavg()[0]
                try:
                    result = {**turn.run(contender), "load": load}
                except Broken as error:
                    print(f"{size} {label}: {error}", file=sys.stderr, flush=True)
                    continue
                shown = {name: round(value, 3) for name, value in result.items()}
                print(f"{size} {repeat + 1}/{arguments.repeats} {label}: {shown}", file=sys.stderr, flush=True)
                found[label].append(result)
        figures[str(size)] = found
    return figures


def _arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=size, default=["200x4", "1000x9"], help="JOBSxWORKERS")
    parser.add_argument("--repeats", type=int, default=1, help="turns of each contender")
    parser.add_argument("--steady", type=float, default=60, help="seconds at rest, and again beside progress")
    parser.add_argument("--progress", type=float, default=30, help="seconds between two reports of a job")
    parser.add_argument("--limit", type=float, default=1500, help="seconds for making the pods")
    parser.add_argument("--concurrency", type=int, default=1, help="KubeRay's --reconcile-concurrency")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="ours alone")
    parser.add_argument("--operator", default="", help="further words of our operator's command line")
    parser.add_argument("--profile", type=Path, help="let cProfile watch our operator, and write here")
    parser.add_argument("--json", type=Path, default=FOLDER / "results.json")
    arguments = parser.parse_args(argv)
    arguments.sizes = [each if isinstance(each, Size) else size(each) for each in arguments.sizes]
    return arguments


def size(text: str) -> Size:
    """A size as "200x4": 200 jobs of a head and 4 others."""
    jobs, _, workers = text.partition("x")
    return Size(int(jobs), int(workers))


if __name__ == "__main__":
    main()
