"""Small runs for tests of the runtime."""

import json
from pathlib import Path
from typing import Any

from rltrain.api.job import RLTrainingJob
from rltrain.api.load import load_text
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.local import run_locally
from rltrain.runtime.result import RunResult

DQN: dict[str, Any] = {
    "plan": "DQN",
    "env": {"id": "CartPole-v1"},
    "config": {
        "num_envs_per_worker": 2,
        "learning_starts": 100,
        "buffer_size": 400,
        "train_batch_size": 16,
        "training_intensity": 3,
        "n_step": 2,
        "timesteps_per_iteration": 150,
        "min_time_s_per_reporting": 0,
        "target_network_update_freq": 70,
        "exploration_config": {"epsilon_timesteps": 500},
        "model": {"fcnet_hiddens": [8]},
        "hiddens": [8],
    },
    "stop": {"envSteps": 700},
    "checkpoint": {"everySeconds": 0.4},
    "seed": 3,
}
DDPPO: dict[str, Any] = {
    "plan": "DDPPO",
    "env": {"id": "CartPole-v1"},
    "config": {
        "num_envs_per_worker": 2,
        "rollout_fragment_length": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 2,
        "model": {"fcnet_hiddens": [8]},
    },
    "workers": {"replicas": 2},
    "stop": {"envSteps": 640},
    "checkpoint": {"everySeconds": 0.4},
    "seed": 3,
}
APEX: dict[str, Any] = {
    **DQN,
    "plan": "Apex",
    "config": {
        **DQN["config"],
        "rollout_fragment_length": 10,
        "buffer_size": 800,
        "target_network_update_freq": 200,
        "optimizer": {"num_replay_buffer_shards": 2, "max_weight_sync_delay": 40},
    },
    "rollouts": {"replicas": 3},
}
APEX_CLASSIC: dict[str, Any] = {
    **APEX,
    "plan": "ApexClassic",
    "config": {key: value for key, value in APEX["config"].items() if key != "training_intensity"},
}
SAC: dict[str, Any] = {
    "plan": "OffPolicy",
    "env": {"id": "Pendulum-v1"},
    "config": {
        "policy": "SAC",
        "num_envs_per_worker": 2,
        "rollout_fragment_length": 4,
        "learning_starts": 100,
        "buffer_size": 400,
        "train_batch_size": 16,
        "training_intensity": 3,
        "n_step": 2,
        "timesteps_per_iteration": 150,
        "min_time_s_per_reporting": 0,
        "model": {"fcnet_hiddens": [8]},
    },
    "stop": {"envSteps": 700},
    "checkpoint": {"everySeconds": 0.4},
    "seed": 3,
}
CQL: dict[str, Any] = {
    "plan": "CQL",
    "env": {"id": "Pendulum-v1"},
    "config": {
        "input": str(Path(__file__).parents[3] / "examples/data/pendulum-sac.npz"),
        "buffer_size": 20_000,
        "train_batch_size": 16,
        "bc_iters": 50,
        "num_actions": 2,
        "target_network_update_freq": 32,
        "timesteps_per_iteration": 400,
        "min_time_s_per_reporting": 0,
        "evaluation_interval": 2,
        "evaluation_num_episodes": 1,
        "model": {"fcnet_hiddens": [8]},
    },
    "stop": {"trainedSteps": 1600},
    "checkpoint": {"everySeconds": 0.4},
    "seed": 3,
}
SPECS = {"Apex": APEX, "ApexClassic": APEX_CLASSIC, "CQL": CQL, "DQN": DQN, "DDPPO": DDPPO, "OffPolicy": SAC}


def job(spec: dict[str, Any], **changes: Any) -> RLTrainingJob:
    """A manifest with some of its sections replaced or, where both are maps, changed."""
    merged = {**spec}
    for name, change in changes.items():
        merged[name] = {**merged[name], **change} if isinstance(merged.get(name), dict) else change
    manifest = {
        "apiVersion": "rltrain.dev/v1alpha1",
        "kind": "RLTrainingJob",
        "metadata": {"name": "test"},
        "spec": merged,
    }
    return load_text(json.dumps(manifest)).job


class InterruptedAt(Interrupts):
    """Ctrl-C at the n-th time that the driver looks."""

    def __init__(self, looks: int) -> None:
        self._left = looks
        super().__init__()

    @property
    def asked(self) -> Any:
        self._left -= 1
        return "interrupted" if self._left < 0 else None

    @asked.setter
    def asked(self, value: object) -> None: ...


def run_serially(job: RLTrainingJob, path: Path, *, resume: bool = False, looks: int = 1_000_000) -> RunResult:
    """A run in this process, interrupted after the driver has looked so often."""
    return run_locally(job, path, resume=resume, serial=True, interrupts=InterruptedAt(looks))


def results(path: Path) -> list[dict[str, Any]]:
    """Lines of results.jsonl."""
    return [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]


def marker(checkpoint: str | Path | None) -> dict[str, Any]:
    """What stands in a checkpoint's checkpoint.json."""
    assert checkpoint is not None
    read: dict[str, Any] = json.loads((Path(checkpoint) / "checkpoint.json").read_text())
    return read
