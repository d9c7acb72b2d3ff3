"""Warnings about what a manifest can hardly mean."""

import pytest

from rltrain.api.doubts import doubts
from trainer.runtime.runs import APEX, CQL, DDPPO, DQN, job


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
    assert told == "nothing will be learnt: stop.envSteps (300) comes before config.learning_starts (300)"
    assert doubts(job(DQN, stop={"envSteps": 301}, config={"learning_starts": 300})) == []


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
