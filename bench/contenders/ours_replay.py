"""Prioritised replay on its own: 1M transitions of CartPole's columns, batches of 512."""

import json
import sys
import time
from collections.abc import Callable

import numpy as np

from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array

CAPACITY, BATCH = 1_000_000, 512


def rate(call: Callable[[], object], seconds: float) -> float:
    """Calls a second of processor time, which what else the machine does leaves alone."""
    call()
    begun, calls = time.process_time(), 0
    while time.process_time() - begun < seconds:
        call()
        calls += 1
    return calls / (time.process_time() - begun)


def main(seconds: float) -> None:
    """Print the result as a line of JSON."""
    rng = np.random.default_rng(0)
    buffer = ReplayBuffer(CAPACITY, seed=0)
    rows: dict[str, Array] = {
        c.OBS: rng.random((CAPACITY, 4), np.float32),
        c.ACTIONS: rng.integers(2, size=CAPACITY),
        c.REWARDS: rng.random(CAPACITY, np.float32),
        c.NEXT_OBS: rng.random((CAPACITY, 4), np.float32),
        c.DISCOUNTS: rng.random(CAPACITY, np.float32),
    }
    buffer.add(Batch(rows), rng.random(CAPACITY))
    drawn = [buffer.sample(BATCH) for _ in range(50)]
    errors = rng.random((50, BATCH))
    turn = 0

    def update() -> None:
        nonlocal turn
        turn = (turn + 1) % 50
        batch = drawn[turn]
        assert batch is not None
        buffer.update_priorities(batch[c.BATCH_INDEXES], batch[c.GENERATIONS], errors[turn])

    sampled = rate(lambda: buffer.sample(BATCH), seconds / 2)
    print(json.dumps({"samples_per_s": sampled, "updates_per_s": rate(update, seconds / 2)}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
