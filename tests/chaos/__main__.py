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
from chaos.scene import CHECKPOINT_SECONDS, JOBS, Scene, Unhealed
from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm
from e2e.kube import ROOT, Kube, progress
from testbed import node

HEAL_SECONDS = 300.0


@dataclass(frozen=True)
class Outcome:
    """What became of a fault.

    Attributes:
        fault, healer: which, and what is to heal it.
        seconds: from the strike's end until all jobs trained again, whole.
        lost_seconds: the most training that a job had to do again, in seconds of its own pace before.
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
    parser.add_argument("--only", default="", help="words of the faults to try")
    parser.add_argument("--storm", type=float, default=600.0, help="seconds of faults at random; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="of the storm")
    parser.add_argument("--json", type=Path, default=Path(".cluster/chaos.json"), help="where the outcomes go")
    args = parser.parse_args()
    chosen = [fault for fault in FAULTS if args.only in fault.name]
    with prepared() as scene:
        scene.begin()
        outcomes = [tell(alone(scene, fault)) for fault in chosen]
        if args.storm:
            outcomes.append(tell(storm(scene, args.storm, random.Random(args.seed))))
        orphans = scene.orphans()
        states = scene.end()
    print(table(outcomes))
    print(f"orphans: {', '.join(orphans) or 'none'}; in the end {states}")
    args.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    well = not orphans and set(states.values()) == {"Succeeded"} and not any(outcome.trouble for outcome in outcomes)
    return 0 if well else 1


@contextmanager
def prepared() -> Iterator[Scene]:
    """The operator with two replicas, and a namespace of its own; both are taken away in the end."""
    machine = node.recorded()
    assert machine is not None, "no cluster: make cluster"
    images = Images(**json.loads((ROOT / ".cluster/images.json").read_text()))
    helm(
        *("upgrade", "--install", RELEASE, str(ROOT / "charts/rltrain"), "--namespace", NAMESPACE),
        *("--create-namespace", "--wait", "--timeout", "180s", "--set", "replicas=2"),
        *("--set", f"image.reference={images.operator},trainerImage.reference={images.trainer}"),
    )
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
    paces = measured(scene)
    before = {name: scene.steps(name) for name in JOBS}
    try:
        fault.strike(scene)
        struck = time.monotonic()
        lost = healed(scene, before)
    except (AssertionError, Unhealed) as error:
        return Outcome(fault.name, fault.healer, 0.0, 0.0, str(error)[:500])
    seconds = time.monotonic() - struck
    return Outcome(fault.name, fault.healer, seconds, max(lost[name] / max(paces[name], 1.0) for name in JOBS))


def storm(scene: Scene, seconds: float, rng: random.Random) -> Outcome:
    """Faults at random, each before the last has healed, for a while; then wait until all is well."""
    paces = measured(scene)
    before = {name: scene.steps(name) for name in JOBS}
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
        lost = healed(scene, before)
    except Unhealed as error:
        return Outcome(f"{len(struck)} at random", "all of these", 0.0, 0.0, str(error)[:500])
    taken = time.monotonic() - healing
    return Outcome(f"{len(struck)} at random", "all of these", taken, max(lost[n] / max(paces[n], 1.0) for n in JOBS))


def measured(scene: Scene) -> dict[str, float]:
    """Env steps a second of each job."""
    return {name: float(progress(scene.kube.job(name)).get("stepsPerSecond") or 0.0) for name in JOBS}


def healed(scene: Scene, before: dict[str, int]) -> dict[str, int]:
    """Wait until every job is whole and past where it was; env steps that each had to do again."""
    scene.wait("every job trains, whole", scene.whole, HEAL_SECONDS)
    scene.wait("every job gets further", lambda: all(scene.steps(name) > before[name] for name in JOBS), HEAL_SECONDS)
    lost = {}
    for name in JOBS:
        from_steps = progress(scene.kube.job(name)).get("resumedFromSteps")
        lost[name] = 0 if from_steps is None else max(before[name] - int(from_steps), 0)
    return lost


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
