"""Sampling on its own: env steps a second of processor time, by one worker, n-step returns and priorities included."""

import json
import sys
import time

import torch

from rltrain.api.config import DQNConfig, ModelConfig
from rltrain.api.env import EnvSpec
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

torch.set_num_threads(1)
NETWORK = ModelConfig(fcnet_hiddens=(64, 64))


def main(envs: int, seconds: float) -> None:
    """Print the result as a line of JSON."""
    config = DQNConfig(
        model=NETWORK, hiddens=(), n_step=3, num_envs_per_worker=envs, rollout_fragment_length=50, compile="Always"
    )
    worker = RolloutWorker(WorkerSpec("DQN", EnvSpec(id="CartPole-v1"), config, seed=0, index=1, num_workers=1))
    worker.sample()
    begun, steps = time.process_time(), 0
    while time.process_time() - begun < seconds:
        steps += worker.sample().count
    print(json.dumps({"steps_per_s": steps / (time.process_time() - begun)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
