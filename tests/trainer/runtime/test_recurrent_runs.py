"""R2D2 as a run: resumed bit by bit, with its buffer of sequences, and trained as much as is asked for."""

from pathlib import Path
from typing import Any

import pytest

from trainer.runtime.runs import job, marker, results, run_serially

R2D2: dict[str, Any] = {
    "plan": "OffPolicy",
    "env": {"id": "rltrain.envs.cartpole:StatelessCartPole"},
    "config": {
        "policy": "R2D2",
        "num_envs_per_worker": 2,
        "rollout_fragment_length": 5,
        "learning_starts": 100,
        "buffer_size": 60,
        "train_batch_size": 60,
        "training_intensity": 4,
        "timesteps_per_iteration": 150,
        "min_time_s_per_reporting": 0,
        "target_network_update_freq": 70,
        "burn_in": 3,
        "zero_init_states": False,
        "prioritized_replay": True,
        "model": {"fcnet_hiddens": [8], "lstm_cell_size": 8, "max_seq_len": 6},
        "hiddens": [8],
    },
    "stop": {"envSteps": 600},
    "checkpoint": {"everySeconds": 0.4},
    "seed": 3,
}


def files(checkpoint: str | None) -> dict[str, str]:
    return {name: file["sha256"] for name, file in marker(checkpoint)["files"].items()}


@pytest.mark.parametrize(
    "changes",
    [{}, {"config": {"model": {"recurrent": "GRU", "lstm_cell_size": 8}, "zero_init_states": True}, "rollouts": 2}],
    ids=["LSTM", "GRU with two workers"],
)
def test_interrupted_run_ends_as_the_uninterrupted_one(changes: dict[str, Any], tmp_path: Path) -> None:
    spec = {**R2D2, "rollouts": {"replicas": changes.get("rollouts", 0)}}
    manifest = job(spec, config=changes.get("config", {}))
    whole = run_serially(manifest, tmp_path / "whole")
    for count, looks in enumerate([30, 40]):
        part = run_serially(manifest, tmp_path / "parts", resume=count > 0, looks=looks)
        assert part.exit_code == 130
    ended = run_serially(manifest, tmp_path / "parts", resume=True)
    assert whole.state == ended.state == "Succeeded"
    assert files(whole.checkpoint) == files(ended.checkpoint)
    assert marker(whole.checkpoint)["hashes"] == marker(ended.checkpoint)["hashes"]


def test_trained_steps_are_learnt_ones_and_keep_to_the_intensity(tmp_path: Path) -> None:
    run_serially(job(R2D2, stop={"envSteps": 3000}), tmp_path)
    first, last = results(tmp_path)[1], results(tmp_path)[-1]
    sampled = last["env_steps"] - first["env_steps"]
    trained = last["trained_steps"] - first["trained_steps"]
    # Of a batch of 60 steps, 20 are burn-in and some of the rest padding: those would tell on the ratio.
    assert trained / sampled == pytest.approx(4, rel=0.02)
