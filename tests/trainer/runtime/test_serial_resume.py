"""In serial mode a run that was interrupted is, bit by bit, the run that wasn't."""

from pathlib import Path
from typing import Any

import pytest

from trainer.runtime.runs import APEX, APEX_CLASSIC, CQL, DDPPO, DQN, SAC, job, marker, results, run_serially

WALL_CLOCK = ("timers_ms", "throughputs", "resumed")


def comparable(path: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key not in WALL_CLOCK} for line in results(path)]


def content(checkpoint: str | None) -> dict[str, str]:
    return {name: file["sha256"] for name, file in marker(checkpoint)["files"].items()}


VARIANTS = {
    "DQN, one update a store": job(
        {**DQN, "config": {key: value for key, value in DQN["config"].items() if key != "training_intensity"}}
    ),
    "DQN, noisy, distributional, two workers": job(
        DQN, config={"noisy": True, "num_atoms": 5, "v_max": 50.0}, rollouts={"replicas": 2}
    ),
    "DQN, noisy, on two devices": job(
        DQN, config={"noisy": True, "_fake_gpus": True}, head={"resources": {"limits": {"nvidia.com/gpu": 2}}}
    ),
    "DDPPO": job(DDPPO, config={"evaluation_interval": 3, "evaluation_num_episodes": 2}),
    "Apex": job(APEX, config={"evaluation_interval": 1, "evaluation_num_episodes": 2, "evaluation_num_workers": 2}),
    "Apex, free running, learner apart": job(APEX_CLASSIC, plan="Apex", learners={"replicas": 1}),
    "Apex, three learners": job(APEX, learners={"replicas": 3}),
    "OffPolicy with SAC": job(SAC, config={"evaluation_interval": 1, "evaluation_num_episodes": 1}),
    "OffPolicy with SAC, prioritised, over discrete actions, two workers": job(
        SAC, env={"id": "CartPole-v1"}, config={"prioritized_replay": True}, rollouts={"replicas": 2}
    ),
    "OffPolicy with DQN": job({**DQN, "plan": "OffPolicy", "config": {**DQN["config"], "policy": "DQN"}}),
    "DQN, environments that fail": job(
        DQN,
        env={"id": "probes.envs:Bad", "kwargs": {"kind": "raise", "step": 5, "every": 3}, "maxRestarts": 1000},
    ),
    "CQL": job(CQL),
    "CQL, with a Lagrange factor": job(CQL, config={"lagrangian": True}, checkpoint={"everySeconds": 10}),
    "ApexClassic without workers": job(APEX_CLASSIC, rollouts={"replicas": 0}),
}


# How often the driver looks before it sees Ctrl-C: in DQN once for each store and update, in DD-PPO each iteration.
LOOKS = {variant: [[1], [6], [3, 4]] if variant == "DDPPO" else [[1], [3, 90]] for variant in VARIANTS}


@pytest.mark.parametrize(("variant", "looks"), [(variant, each) for variant in VARIANTS for each in LOOKS[variant]])
def test_interrupted_run_ends_as_the_uninterrupted_one(variant: str, looks: list[int], tmp_path: Path) -> None:
    manifest = VARIANTS[variant]
    whole = run_serially(manifest, tmp_path / "whole")
    for count, number in enumerate(looks):
        part = run_serially(manifest, tmp_path / "parts", resume=count > 0, looks=number)
        assert (part.state, part.exit_code) == ("Interrupted", 130)
    ended = run_serially(manifest, tmp_path / "parts", resume=True)

    assert whole.state == ended.state == "Succeeded"
    assert content(whole.checkpoint) == content(ended.checkpoint)
    assert marker(whole.checkpoint)["hashes"] == marker(ended.checkpoint)["hashes"]
    assert comparable(tmp_path / "whole") == comparable(tmp_path / "parts")


@pytest.mark.parametrize(("spec", "looks"), [(APEX, 60), (DQN, 60), (DDPPO, 6)], ids=["Apex", "DQN", "DDPPO"])
def test_first_result_after_a_resume_has_the_hashes_of_what_was_restored(spec: Any, looks: int, tmp_path: Path) -> None:
    part = run_serially(job(spec), tmp_path / "run", looks=looks)
    saved = marker(part.checkpoint)["hashes"]
    run_serially(job(spec), tmp_path / "run", resume=True)
    resumed = [line["resumed"] for line in results(tmp_path / "run") if "resumed" in line]
    assert len(resumed) == 1
    assert resumed[0]["env_steps"] == part.env_steps > 0
    assert resumed[0]["hashes"] == saved


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    first = run_serially(job(DQN), tmp_path / "a")
    second = run_serially(job(DQN, seed=4), tmp_path / "b")
    assert content(first.checkpoint) != content(second.checkpoint)
