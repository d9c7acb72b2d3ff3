"""What is learnt: each row's manifest, the steps it has, and the return that is wanted of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).parent.parent
SEEDS: Final = (1, 2, 3)
EPISODES: Final = 20
"""Of an evaluation: greedy ones, whose seeds no training has."""


@dataclass(frozen=True)
class Want:
    """What the median of the seeds' returns must be after so many steps.

    Attributes:
        at_least: the least return.
        below: what it must stay under, of an agent that is meant to fail.
        worse_than: the row that it must stay under.
    """

    steps: int
    at_least: float | None = None
    below: float | None = None
    worse_than: str | None = None


@dataclass(frozen=True)
class Row:
    """One agent.

    Attributes:
        about: what it is, for the table.
        picture: rows of the same name share their curves' picture.
        manifest: relative to the project's root; its stop criteria give way to the wants' steps.
        wants: in the order of their steps; a run goes on from one to the next.
        changes: of the manifest, each as `rltrain run --set` takes it.
        counted: the stop criterion that the steps are.
    """

    about: str
    picture: str
    manifest: str
    wants: tuple[Want, ...]
    changes: tuple[str, ...] = ()
    counted: Literal["envSteps", "trainedSteps"] = "envSteps"


CQL_STEPS: Final = 10_000 * 256

ROWS: Final[dict[str, Row]] = {
    "identity-dqn": Row(
        "DQN names what it sees", "identity", "learn/manifests/identity-dqn.yaml", (Want(2_000, at_least=90),)
    ),
    "identity-ppo": Row(
        "PPO names what it sees", "identity", "learn/manifests/identity-ppo.yaml", (Want(2_000, at_least=90),)
    ),
    "meeting": Row("DQN, two agents that meet", "meeting", "examples/meeting-dqn.yaml", (Want(6_000, at_least=28),)),
    "dqn": Row("DQN, CartPole", "dqn", "examples/cartpole-dqn.yaml", (Want(50_000, at_least=450),)),
    "ddppo": Row(
        "DD-PPO with 2 ranks, CartPole", "ddppo", "examples/cartpole-ddppo.yaml", (Want(100_000, at_least=450),)
    ),
    "cql": Row(
        "CQL from data alone, Pendulum",
        "cql",
        "examples/pendulum-cql.yaml",
        (Want(CQL_STEPS, at_least=-300),),
        counted="trainedSteps",
    ),
    "cql-imitating": Row(
        "CQL that imitates the data's actions, Pendulum",
        "cql",
        "examples/pendulum-cql.yaml",
        (Want(CQL_STEPS, worse_than="cql"),),
        ("config.bc_iters=10000",),
        "trainedSteps",
    ),
    "cql-unpenalised": Row(
        "CQL without its penalty, Pendulum",
        "cql",
        "examples/pendulum-cql.yaml",
        (Want(CQL_STEPS, worse_than="cql"),),
        ("config.min_q_weight=0",),
        "trainedSteps",
    ),
    "sac": Row("SAC, Pendulum", "sac", "examples/pendulum-sac.yaml", (Want(10_000, at_least=-160),)),
    "r2d2": Row(
        "R2D2, CartPole without velocities", "r2d2", "examples/cartpole-r2d2.yaml", (Want(50_000, at_least=150),)
    ),
    "r2d2-feedforward": Row(
        "DQN, without a memory, CartPole without velocities",
        "r2d2",
        "learn/manifests/cartpole-no-memory.yaml",
        (Want(50_000, below=150),),
    ),
    "apex": Row(
        "Ape-X with 3 workers and 2 shards, CartPole",
        "apex",
        "examples/cartpole-apex.yaml",
        (Want(100_000, at_least=150), Want(250_000, at_least=450)),
    ),
}
"""Cheapest first, as far as what belongs together stays together."""


@dataclass(frozen=True)
class Choice:
    """A row and a seed to run it with."""

    row: str
    seed: int


def choose(words: Sequence[str]) -> list[Choice]:
    """Runs by words like "sac", all its seeds, or "sac:2"; all rows without any, in the rows' order.

    Raises:
        ValueError: there is no such row, or a seed isn't a number from 0.
    """
    chosen: list[Choice] = []
    for word in words or list(ROWS):
        name, colon, seed = word.partition(":")
        if name not in ROWS:
            raise ValueError(f"no such row: {name}; there are {', '.join(ROWS)}")
        if colon and not seed.isdecimal():
            raise ValueError(f"{word}: the seed must be a number, as in {name}:1")
        chosen += [Choice(name, each) for each in ([int(seed)] if colon else SEEDS)]
    order = list(ROWS)
    return sorted(dict.fromkeys(chosen), key=lambda choice: (order.index(choice.row), choice.seed))
