"""RLlib's new API stack: env steps a second of `dqn`, `ppo` or `sac`, after the first updates."""

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig


def config_of(algorithm: str) -> tuple[Any, int]:
    """The config, and steps after which it is in its stride."""
    if algorithm == "dqn":
        replay = {"type": "PrioritizedEpisodeReplayBuffer", "capacity": 50_000, "alpha": 0.6, "beta": 0.4}
        config = DQNConfig().environment("CartPole-v1").env_runners(num_env_runners=2, rollout_fragment_length=4)
        config = config.training(
            train_batch_size_per_learner=32,
            num_steps_sampled_before_learning_starts=1000,
            target_network_update_freq=500,
            training_intensity=8,
            replay_buffer_config=replay,
            double_q=False,
            dueling=False,
        )
        model = DefaultModelConfig(fcnet_hiddens=[256], fcnet_activation="tanh", head_fcnet_hiddens=[])
        return config.rl_module(model_config=model), 1100
    if algorithm == "ppo":
        config = PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=2, num_envs_per_env_runner=5)
        config = config.training(train_batch_size_per_learner=1000, minibatch_size=100, num_epochs=10)
        return config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh")), 1000
    config = SACConfig().environment("Pendulum-v1").env_runners(num_env_runners=0, rollout_fragment_length=1)
    config = config.training(train_batch_size_per_learner=256, num_steps_sampled_before_learning_starts=500)
    return config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[256, 256], fcnet_activation="relu")), 520


def main(algorithm: str, seconds: float) -> None:
    """Print the result as a line of JSON."""
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    config, warmup = config_of(algorithm)
    config = config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    trainer = config.build_algo()
    begun, first, steps = 0.0, 0, 0
    while not begun or time.perf_counter() - begun < seconds:
        steps = int(trainer.train()["num_env_steps_sampled_lifetime"])
        if not begun and steps >= warmup:
            begun, first = time.perf_counter(), steps
    took = time.perf_counter() - begun
    trainer.stop()
    ray.shutdown()
    print(json.dumps({"steps_per_s": (steps - first) / took}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
