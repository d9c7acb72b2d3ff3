"""What is measured: each row's contenders, which do the same work, and the ratios that are wanted of them."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CONTENDERS: Final = ROOT / "bench" / "contenders"
PEERS: Final = Path(os.environ.get("RLTRAIN_BENCH_PEERS") or ROOT / ".bench")
"""Where the peers' environments are."""
SECONDS: Final = 15
MEMORY_SECONDS: Final = 600


@dataclass(frozen=True)
class Contender:
    """A script of `contenders/`, run by this Python or a peer's; its last line of output is JSON with its rates."""

    script: str
    arguments: tuple[str, ...]
    environment: str | None = None

    def command(self) -> list[str]:
        """As a process is started."""
        python = sys.executable if self.environment is None else str(PEERS / self.environment / "bin" / "python")
        return [python, str(CONTENDERS / self.script), *self.arguments]


@dataclass(frozen=True)
class Ratio:
    """A quotient of two contenders' figures.

    Attributes:
        of, to: "contender" or "contender:figure"; without `to` the figure itself is reported.
    """

    name: str
    of: str
    to: str | None = None


@dataclass(frozen=True)
class Row:
    """One table row: contenders by name, the ratios between them, and how often at most each contender is run."""

    about: str
    contenders: dict[str, Contender]
    ratios: tuple[Ratio, ...]
    repeats: int = 10


def ours(name: str, mode: str = "Always", seconds: int = SECONDS) -> Contender:
    """A whole run of ours by the command line."""
    return Contender("ours_training.py", (name, str(seconds), mode))


def peers(algorithm: str) -> dict[str, Contender]:
    """Stable-Baselines3 and RLlib."""
    arguments, environment = (algorithm, str(SECONDS)), "sb3-rllib"
    return {
        "sb3": Contender("peer_sb3.py", arguments, environment),
        "rllib": Contender("peer_rllib.py", arguments, environment),
    }


ROWS: Final[dict[str, Row]] = {
    "dqn": Row(
        "DQN, CartPole, batch 32, an update each 4 steps, net [256], prioritised but for SB3's: env steps/s",
        {"ours": ours("dqn"), "plain": ours("dqn", "Never"), **peers("dqn")},
        (Ratio("x SB3", "ours", "sb3"), Ratio("x RLlib", "ours", "rllib"), Ratio("x without compile", "ours", "plain")),
    ),
    "ppo": Row(
        "DD-PPO, CartPole, 2 ranks, 1,000 steps x 10 epochs, minibatch 100, nets [64, 64]: env steps/s",
        {
            "ours": ours("ppo"),
            **peers("ppo"),
            "sample_factory": Contender("peer_sample_factory.py", (str(SECONDS),), "sample-factory"),
        },
        (
            Ratio("x SB3", "ours", "sb3"),
            Ratio("x RLlib", "ours", "rllib"),
            Ratio("x Sample Factory", "ours", "sample_factory"),
        ),
    ),
    "ranks": Row(
        "DD-PPO, 1 -> 2 ranks of 500 steps each: env steps/s",
        {"one": ours("ppo1"), "two": ours("ppo")},
        (Ratio("2 ranks x 1 rank", "two", "one"),),
    ),
    "scaling": Row(
        "DD-PPO with a CNN, 84 x 84 x 4: 2 ranks beside 2 runs of one rank each that share nothing: env steps/s",
        {"together": ours("pixels", "Never"), "apart": Contender("ours_apart.py", ("pixels1", str(SECONDS), "Never"))},
        (Ratio("2 ranks x 2 apart", "together", "apart"),),
    ),
    "sac": Row(
        "SAC, Pendulum, batch 256, nets 256x256, an update each step: env steps/s",
        {"ours": ours("sac"), **peers("sac")},
        (Ratio("x SB3", "ours", "sb3"), Ratio("x RLlib", "ours", "rllib")),
    ),
    "replay": Row(
        "Prioritised replay, 1M transitions, batch 512: batches a second of processor time",
        {"ours": Contender("ours_replay.py", ("6",)), "heap": Contender("heap_replay.py", ("6",))},
        (
            Ratio("samples/s", "ours:samples_per_s"),
            Ratio("priority updates/s", "ours:updates_per_s"),
            Ratio("samples x heap", "ours:samples_per_s", "heap:samples_per_s"),
            Ratio("updates x heap", "ours:updates_per_s", "heap:updates_per_s"),
        ),
    ),
    "sampling": Row(
        "Sampling, CartPole, net [64, 64], 3-step: env steps a second of processor time",
        {"1 env": Contender("ours_sampling.py", ("1", "5")), "64 envs": Contender("ours_sampling.py", ("64", "5"))},
        (Ratio("steps/s, 1 env", "1 env"), Ratio("steps/s, 64 envs", "64 envs")),
    ),
    "weights": Row(
        "Weight sync to 2 workers, 130,000 parameters: syncs/s",
        {"ours": Contender("ours_weights.py", ("3",))},
        (Ratio("syncs/s", "ours:syncs_per_s"),),
    ),
    "start": Row(
        "DQN, from the command's start to the first reported update: seconds",
        {"ours": Contender("ours_training.py", ("dqn", "1", "Auto"))},
        (Ratio("seconds", "ours:first_update_s"),),
    ),
    "apex": Row(
        "Ape-X, CartPole, 2 workers of 64 envs, one shard, batch 512: sampled env steps/s",
        {"ours": ours("apex"), "alone": Contender("ours_learner.py", ("5",))},
        (
            Ratio("steps/s", "ours"),
            Ratio("learner's idle share", "ours:idle"),
            Ratio("updates/s x the learner alone", "ours:trained_per_s", "alone:trained_per_s"),
        ),
    ),
    "delivery": Row(
        "Ape-X that only samples, first priorities and delivery included: env steps a second of processor time",
        {"ours": Contender("ours_delivery.py", ("10",))},
        (Ratio("steps/s a core", "ours"),),
    ),
    "memory": Row(
        f"Ape-X for {MEMORY_SECONDS} s: memory of all processes at the end, over that after a quarter of the time",
        {"ours": ours("apex", seconds=MEMORY_SECONDS)},
        (Ratio("growth", "ours:memory_growth"),),
        repeats=1,
    ),
}
