"""`python -m chaos`: every fault alone, then faults at random, over three running jobs."""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from chaos.faults import FAULTS, Fault
from chaos.ledger import keeping
from chaos.scene import CHECKPOINT_SECONDS, JOBS, Scene, Unhealed
from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm, wait_installed
from e2e.kube import ROOT, Kube, progress
from testbed import node

HEAL_SECONDS = 300.0
PACE_SECONDS = 5.0


@dataclass(frozen=True)
class Before:
    """A job as a fault finds it.

    Attributes:
        attempt: which start of its driver trains.
        steps: env steps.
        pace: of them in a second.
    """

    attempt: int
    steps: int
    pace: float


@dataclass(frozen=True)
class Outcome:
    """What became of a fault.

    Attributes:
        fault, healer: which, and what is to heal it.
        seconds: from the strike's end until all jobs trained again, whole.
        lost_seconds: the most training that a job had to do again, in seconds of its own pace before; not measured over
            several faults.
        trouble: what didn't heal; empty if all did.
    """

    fault: str
    healer: str
    seconds: float
    lost_seconds: float
    trouble: str = ""


def main() -> int:
    """0 if everything healed and every job succeeded."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--only", default="", help="words of the faults to try, with commas between")
    parser.add_argument("--storm", type=float, default=600.0, help="seconds of faults at random; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="of the storm")
    parser.add_argument("--json", type=Path, default=Path(".cluster/chaos.json"), help="where the outcomes go")
    args = parser.parse_args()
    chosen = [fault for fault in FAULTS if any(words in fault.name for words in args.only.split(","))]
    with prepared() as scene, keeping(scene.kube) as ledger:
        scene.begin()
        outcomes = [tell(alone(scene, fault)) for fault in chosen]
        if args.storm:
            outcomes.append(tell(storm(scene, args.storm, random.Random(args.seed))))
        orphans = scene.orphans()
        states = scene.end()
        if not (succeeded := set(states.values()) == {"Succeeded"}):
            print(scene.kube.story(), file=sys.stderr)
    print(table(outcomes))
    print(f"orphans: {', '.join(orphans) or 'none'}; in the end {states}")
    print(f"of {len(ledger.starts)} starts from a checkpoint, from an older one than was told: {ledger.fell_back or 0}")
    args.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    well = succeeded and not orphans and not ledger.fell_back and not any(outcome.trouble for outcome in outcomes)
    return 0 if well else 1


@contextmanager
def prepared() -> Iterator[Scene]:
    """The operator with two replicas, and a namespace of its own; both are taken away in the end."""
    machine = node.recorded()
    assert machine is not None, "no cluster: make cluster"
    images = Images(**json.loads((ROOT / ".cluster/images.json").read_text()))
    wait_installed(images, "--set=replicas=2")
    kube = Kube("chaos")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kube.namespace, "labels": labels}})
    try:
        yield Scene(kube, Operator(Kube(NAMESPACE)), images, machine)
    except BaseException:
        print(kube.story(), file=sys.stderr)
        raise
    finally:
        kube.kubectl("delete", "rltj", "--all")
        kube.kubectl("delete", "namespace", kube.namespace, "--timeout=180s")
        helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


def alone(scene: Scene, fault: Fault) -> Outcome:
    """Strike once, and wait until all is well."""
    before = measured(scene)
    try:
        fault.strike(scene)
        struck = time.monotonic()
        healed(scene, before)
    except (AssertionError, Unhealed) as error:
        print(scene.kube.story(), scene.operator.logs()[-10_000:], sep="\n", file=sys.stderr)
        return Outcome(fault.name, fault.healer, 0.0, 0.0, str(error)[:500])
    seconds = time.monotonic() - struck
    return Outcome(fault.name, fault.healer, seconds, max(done_again(scene, name, before[name]) for name in JOBS))


def storm(scene: Scene, seconds: float, rng: random.Random) -> Outcome:
    """Faults at random, each before the last has healed, for a while; then wait until all is well."""
    before = measured(scene)
    struck = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fault = rng.choice(FAULTS)
        struck.append(fault.name)
        print(f"  {end - time.monotonic():4.0f} s left: {fault.name}", flush=True)
        try:
            fault.strike(scene)
        except (AssertionError, Unhealed) as error:
            # What it waits for may be hidden by another fault: what counts is how all ends.
            print(f"       {str(error)[:200]}", flush=True)
        time.sleep(rng.uniform(0, 15))
    healing = time.monotonic()
    try:
        healed(scene, before)
    except Unhealed as error:
        return Outcome(f"{len(struck)} at random", "all of these", 0.0, 0.0, str(error)[:500])
    return Outcome(f"{len(struck)} at random", "all of these", time.monotonic() - healing, 0.0)


def measured(scene: Scene) -> dict[str, Before]:
    """Every job, over a few seconds."""
    first = {name: scene.steps(name) for name in JOBS}
    time.sleep(PACE_SECONDS)
    found = {}
    for name in JOBS:
        now = progress(scene.kube.job(name))
        steps = int(now["envSteps"])
        found[name] = Before(int(now["attempt"]), steps, max(steps - first[name], 1) / PACE_SECONDS)
    return found


def healed(scene: Scene, before: dict[str, Before]) -> None:
    """Wait until every job is whole and past where it was."""
    scene.wait("every job trains, whole", scene.whole, HEAL_SECONDS)
    further = "every job gets further"
    scene.wait(further, lambda: all(scene.steps(name) > before[name].steps for name in JOBS), HEAL_SECONDS)


def done_again(scene: Scene, name: str, before: Before) -> float:
    """Seconds of a job's former pace by which its driver fell back, if another start of it trains now."""
    now = progress(scene.kube.job(name))
    if now["attempt"] == before.attempt:
        return 0.0
    return max(before.steps - int(now.get("resumedFromSteps") or 0), 0) / before.pace


def tell(outcome: Outcome) -> Outcome:
    state = outcome.trouble or f"whole after {outcome.seconds:.0f} s, {outcome.lost_seconds:.0f} s done again"
    print(f"{outcome.fault}: {state}", flush=True)
    return outcome


def table(outcomes: list[Outcome]) -> str:
    """Markdown."""
    rows = [
        f"| {each.fault} | {each.healer} | {each.trouble or f'{each.seconds:.0f} s'} | {each.lost_seconds:.0f} s |"
        for each in outcomes
    ]
    head = ["| lost | healed by | all whole after | training done again |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, f"\nA checkpoint each {CHECKPOINT_SECONDS} s."])


if __name__ == "__main__":
    sys.exit(main())
