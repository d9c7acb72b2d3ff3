"""Ape-X's learner alone: updates a second from one batch of 512 that it is given again and again."""

import json
import sys
import time

import numpy as np
import torch

from rltrain.api.config import ApexConfig, ModelConfig
from rltrain.api.env import EnvSpec
from rltrain.ops.learner import Learner
from rltrain.ops.train import BeforeLearnOnBatch
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

torch.set_num_threads(1)
ROWS = 512


def main(seconds: float) -> None:
    """Print the result as a line of JSON."""
    model = ModelConfig(fcnet_hiddens=(64, 64), fcnet_activation="tanh")
    config = ApexConfig(model=model, hiddens=(), n_step=3, train_batch_size=ROWS, compile="Always")
    spec = WorkerSpec("Apex", EnvSpec(id="CartPole-v1"), config, seed=0, num_workers=2)
    learner = Learner(RolloutWorker(spec).policy, BeforeLearnOnBatch(None))
    rng = np.random.default_rng(0)
    batch = Batch(
        {
            c.OBS: rng.random((ROWS, 4), np.float32),
            c.ACTIONS: rng.integers(2, size=ROWS),
            c.REWARDS: np.ones(ROWS, np.float32),
            c.NEXT_OBS: rng.random((ROWS, 4), np.float32),
            c.DISCOUNTS: np.full(ROWS, 0.97, np.float32),
            c.WEIGHTS: rng.random(ROWS, np.float32),
            c.BATCH_INDEXES: np.arange(ROWS),
            c.GENERATIONS: np.ones(ROWS, np.int64),
        }
    )
    learner.learn(0, [batch])
    begun, updates = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        learner.learn(0, [batch])
        updates += 1
    rate = updates / (time.perf_counter() - begun)
    print(json.dumps({"updates_per_s": rate, "trained_per_s": rate * ROWS}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
