"""Sample Factory's APPO with two workers on CartPole: env steps a second, from its own count of frames."""

import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from typing import Any

import gymnasium
from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner


class Watch(AlgoObserver):
    """Notes time and steps whenever the learner has trained; when it is enough prints the result and ends all at once.

    The runner's own way to end waits for its processes, which it doesn't always survive.
    """

    def __init__(self, seconds: float, folder: str) -> None:
        self.seconds = seconds
        self.folder = folder
        self.marks: list[tuple[float, int]] = []

    def on_training_step(self, runner: Runner, training_iteration_since_resume: int) -> None:
        steps = sum(runner.env_steps.values())
        if steps >= 2000:
            self.marks.append((time.perf_counter(), steps))
            if self.marks[-1][0] - self.marks[0][0] >= self.seconds:
                self._end()

    def _end(self) -> None:
        (begun, first), (ended, last) = self.marks[0], self.marks[-1]
        print(json.dumps({"steps_per_s": (last - first) / (ended - begun)}), flush=True)
        for child in multiprocessing.active_children():
            child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)


def make_cartpole(name: str, cfg: Any, config: Any, render_mode: str | None = None) -> Any:
    """The environment; a function of this module, so that the workers' processes find it."""
    return gymnasium.make("CartPole-v1")


def main(seconds: float) -> None:
    """Train until enough has been seen; the result is printed as a line of JSON."""
    register_env("cartpole", make_cartpole)
    with tempfile.TemporaryDirectory() as folder:
        options = {
            **{"algo": "APPO", "env": "cartpole", "experiment": "bench", "train_dir": folder, "device": "cpu"},
            **{"num_workers": 2, "num_envs_per_worker": 10, "worker_num_splits": 2, "rollout": 50},
            **{"batch_size": 100, "num_batches_per_epoch": 10, "num_epochs": 10, "shuffle_minibatches": True},
            **{"use_rnn": False, "nonlinearity": "tanh", "encoder_mlp_layers": ["64", "64"]},
            **{"save_every_sec": 1000, "with_wandb": False},
            **{"serial_mode": False, "async_rl": True, "normalize_input": False, "normalize_returns": False},
        }
        arguments: list[str] = []
        for name, value in options.items():
            arguments += [f"--{name}", *(value if isinstance(value, list) else [str(value)])]
        parser, _ = parse_sf_args(argv=arguments)
        config = parse_full_cfg(parser, argv=arguments)
        config, runner = make_runner(config)
        runner.register_observer(Watch(seconds, folder))
        if runner.init() == ExperimentStatus.SUCCESS:
            runner.run()


if __name__ == "__main__":
    main(float(sys.argv[1]))
