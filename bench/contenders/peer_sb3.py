"""Stable-Baselines3: env steps a second of `dqn`, `ppo` or `sac`, between the first update's end and the last."""

import json
import sys
import time
from typing import Any

import gymnasium
import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

torch.set_num_threads(1)


class Stopwatch(BaseCallback):
    """Counts steps from `warmup` on, and ends training after `seconds`."""

    def __init__(self, warmup: int, seconds: float) -> None:
        super().__init__()
        self.warmup, self.seconds, self.begun, self.cpu, self.first = warmup, seconds, 0.0, 0.0, 0

    def _on_step(self) -> bool:
        if not self.begun and self.num_timesteps >= self.warmup:
            self.begun, self.cpu, self.first = time.perf_counter(), time.process_time(), self.num_timesteps
        return not self.begun or time.perf_counter() - self.begun < self.seconds


def model_of(algorithm: str) -> tuple[Any, int]:
    """The model, and steps after which it is in its stride."""
    tanh = torch.nn.Tanh
    if algorithm == "dqn":
        network = {"net_arch": [256], "activation_fn": tanh}
        env = gymnasium.make("CartPole-v1")
        options = {"batch_size": 32, "train_freq": 4, "learning_starts": 1000, "buffer_size": 50_000}
        return DQN("MlpPolicy", env, policy_kwargs=network, target_update_interval=500, **options), 1500
    if algorithm == "ppo":
        network = {"net_arch": [64, 64], "activation_fn": tanh}
        env = make_vec_env("CartPole-v1", n_envs=10)
        return PPO("MlpPolicy", env, n_steps=100, batch_size=100, n_epochs=10, policy_kwargs=network), 1001
    env = gymnasium.make("Pendulum-v1")
    network = {"net_arch": [256, 256]}
    return SAC("MlpPolicy", env, batch_size=256, learning_starts=500, policy_kwargs=network), 520


def main(algorithm: str, seconds: float) -> None:
    """Print the result as a line of JSON."""
    model, warmup = model_of(algorithm)
    watch = Stopwatch(warmup, seconds)
    model.learn(10_000_000, callback=watch)
    steps = model.num_timesteps - watch.first
    took, cpu = time.perf_counter() - watch.begun, time.process_time() - watch.cpu
    print(json.dumps({"steps_per_s": steps / took, "steps_per_cpu_s": steps / cpu}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
