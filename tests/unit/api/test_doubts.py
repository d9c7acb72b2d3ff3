"""Warnings about what a manifest can hardly mean."""

from pathlib import Path
from typing import Any

import pytest

from rltrain.api.doubts import doubts
from trainer.runtime.runs import APEX, CQL, DDPPO, DQN, SAC, job, run_serially


def test_a_manifest_that_means_what_it_says_raises_no_doubt() -> None:
    for spec in (APEX, CQL, DDPPO, DQN):
        assert doubts(job(spec), cores=2) == []


def test_suspend_is_doubted_on_one_machine_alone() -> None:
    (told,) = doubts(job(DQN, suspend=True), cores=2)
    assert told.startswith("spec.suspend is for a cluster")
    assert doubts(job(DQN, suspend=True)) == []


def test_autoscaling_is_doubted_on_one_machine_alone() -> None:
    scaled = job(DQN, rollouts={"replicas": 2, "maxReplicas": 4, "autoscale": True})
    assert doubts(scaled, cores=2) == ["rollouts.autoscale is for a cluster: on one machine the run keeps 2 workers"]
    assert doubts(scaled) == []


def test_a_run_that_ends_before_it_learns_is_doubted() -> None:
    (told,) = doubts(job(DQN, stop={"envSteps": 300}, config={"learning_starts": 300}))
    assert told == (
        "nothing will be learnt: the first update is made after 304 steps (config.learning_starts is 300), when "
        "stop.envSteps (300) has ended the run; set it higher"
    )


@pytest.mark.parametrize(
    ("spec", "changes", "steps", "why"),
    [
        (DQN, {"config": {"learning_starts": 300}}, 304, "config.learning_starts is 300"),
        (DQN, {"config": {"learning_starts": 100, "train_batch_size": 248}}, 248, "config.train_batch_size is 248"),
        (DQN, {"config": {"learning_starts": 0}, "rollouts": {"replicas": 5}}, 40, "a sample has 40,"),
        (
            DQN,
            {"config": {"learning_starts": 100, "training_intensity": 0.05}},
            416,
            "config.training_intensity is 0.05",
        ),
        (SAC, {"config": {"training_intensity": None}}, 104, "config.learning_starts is 100"),
    ],
)
def test_the_steps_of_the_first_update_are_told_exactly(
    spec: dict[str, Any], changes: dict[str, Any], steps: int, why: str, tmp_path: Path
) -> None:
    too_few = job(spec, stop={"envSteps": steps}, **changes)
    (told,) = doubts(too_few)
    assert f"after {steps} steps ({why}" in told
    assert run_serially(too_few, tmp_path / "too few").trained_steps == 0
    enough = job(spec, stop={"envSteps": steps + 1}, **changes)
    assert doubts(enough) == []
    assert run_serially(enough, tmp_path / "enough").trained_steps > 0


def test_sharded_replay_is_doubted_where_not_even_one_shard_can_be_warm() -> None:
    shards = {"buffer_size": 2000, "learning_starts": 1000, "optimizer": {"num_replay_buffer_shards": 2}}
    (told,) = doubts(job(APEX, config=shards, stop={"envSteps": 500}))
    assert "after 500 steps (config.learning_starts is 1,000)" in told
    assert doubts(job(APEX, config=shards, stop={"envSteps": 501})) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"env": {"id": "my_envs:Meeting"}},  # its agents may share a policy, and each brings a row
        {"config": {"multiagent": {"policy_mapping": {"*": "one"}}}},
        {"plan": "my_plans:mine", "basePlan": "DQN"},
    ],
)
def test_what_the_manifest_alone_does_not_tell_is_not_doubted(changes: dict[str, Any]) -> None:
    large = job(DQN, config={"learning_starts": 0, "train_batch_size": 64}, stop={"envSteps": 40})
    assert len(doubts(large)) == 1
    assert doubts(job(large.spec.model_dump(mode="json", by_alias=True, exclude_unset=True), **changes)) == []


@pytest.mark.parametrize("spec", [DQN, DDPPO, APEX], ids=["DQN", "DDPPO", "Apex"])
def test_a_return_that_there_can_be_no_episodes_for_is_doubted(spec: dict[str, Any]) -> None:
    window = {"metrics_num_episodes_for_smoothing": 1000}
    (told,) = doubts(job(spec, config=window, stop={"envSteps": 720, "episodeReturnMean": 400}))
    assert told == (
        "stop.episodeReturnMean can't end the run: it counts once 1,000 episodes have ended "
        "(config.metrics_num_episodes_for_smoothing), and stop.envSteps allows for 720 steps"
    )
    assert doubts(job(spec, config=window, stop={"envSteps": 720})) == []
    assert doubts(job(spec, config=window, stop={"envSteps": 1000, "episodeReturnMean": 400})) == []


@pytest.mark.parametrize("other", [{"trainedSteps": 10}, {"timeSeconds": 10}])
def test_cql_that_counts_sampled_steps_alone_is_doubted(other: dict[str, int]) -> None:
    (told,) = doubts(job({**CQL, "stop": {"envSteps": 100}}))
    assert "set stop.trainedSteps" in told
    assert doubts(job({**CQL, "stop": {"envSteps": 100, **other}})) == []


def test_many_more_workers_than_processors_are_doubted_where_they_share_them() -> None:
    many = job(APEX, rollouts={"replicas": 32})
    assert doubts(many, cores=2) == ["32 workers will share 2 processors: lower rollouts.replicas"]
    assert doubts(many, cores=16) == doubts(many) == []


def test_a_run_that_ends_before_its_first_evaluation_is_doubted() -> None:
    config = {"evaluation_interval": 3, "timesteps_per_iteration": 100, "learning_starts": 0}
    (told,) = doubts(job(DQN, stop={"envSteps": 299}, config=config))
    assert "after 300 steps" in told
    assert doubts(job(DQN, stop={"envSteps": 300}, config=config)) == []


def test_replay_pods_without_a_shard_are_doubted() -> None:
    (told,) = doubts(job(APEX, replay={"replicas": 5}))
    assert told.startswith("3 of 5 replay pods will hold no shard")
    assert doubts(job(APEX, replay={"replicas": 2})) == []
