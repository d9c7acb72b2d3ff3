"""Ape-X's manifests: old RLlib's defaults, roles that own the counts, and what is refused with the line to write."""

from collections.abc import Callable

import pytest

from rltrain.api.errors import Problem
from rltrain.api.job import ApexClassicSpec, ApexSpec
from rltrain.api.load import load_text
from unit.api.conftest import manifest

Problems = Callable[..., list[Problem]]


def apex(body: str = "") -> ApexSpec:
    found = load_text(manifest(body, "Apex")).job.spec
    assert isinstance(found, ApexSpec)
    return found


def test_defaults_are_old_rllibs() -> None:
    spec = apex()
    config = spec.config
    assert (spec.rollouts.replicas, spec.replay.replicas, spec.learners.replicas) == (32, 0, 0)
    assert (config.buffer_size, config.learning_starts, config.train_batch_size) == (2_000_000, 50_000, 512)
    assert (config.rollout_fragment_length, config.n_step) == (50, 3)
    assert config.target_network_update_freq == 500_000
    assert (config.timesteps_per_iteration, config.min_time_s_per_reporting) == (25_000, 30.0)
    assert config.worker_side_prioritization
    assert config.training_intensity is None
    assert config.optimizer.model_dump() == {
        "num_replay_buffer_shards": 4,
        "max_weight_sync_delay": 400,
        "debug": False,
    }
    classic = load_text(manifest(plan="ApexClassic")).job.spec
    assert isinstance(classic, ApexClassicSpec)
    assert classic.rollouts.replicas == 32
    shared = set(type(classic.config).model_fields)
    assert config.model_dump(include=shared) == classic.config.model_dump()


@pytest.mark.parametrize(
    ("plan", "line", "hint"),
    [
        ("Apex", "config: {num_workers: 8}", "spec.rollouts.replicas"),
        ("Apex", "config: {num_learners: 1}", "spec.learners.replicas"),
        ("Apex", "config: {num_gpus: 1}", "nvidia.com/gpu"),
        ("Apex", "config: {num_replay_buffer_shards: 2}", "spec.config.optimizer.num_replay_buffer_shards"),
        ("Apex", "config: {max_weight_sync_delay: 2}", "spec.config.optimizer.max_weight_sync_delay"),
        ("Apex", "workers: {replicas: 8}", "spec.rollouts"),
        ("ApexClassic", "replay: {replicas: 2}", "plan Apex has pods for them"),
        ("ApexClassic", "learners: {replicas: 1}", "plan Apex has a pod for it"),
        ("ApexClassic", "config: {replay_buffer_shards_colocated_with_driver: true}", "leave it out"),
        ("DQN", "learners: {replicas: 1}", "learns in the head"),
    ],
)
def test_what_another_place_says_is_refused_with_that_place(
    problems: Problems, plan: str, line: str, hint: str
) -> None:
    (found,) = problems(manifest(line, plan))
    assert "unknown key" in found.message
    assert hint in (found.hint or "")


def test_shards_are_where_the_role_says_and_the_old_key_must_say_the_same(problems: Problems) -> None:
    key = "replay_buffer_shards_colocated_with_driver"
    assert apex(f"config: {{{key}: true}}").replay.replicas == 0
    assert apex(f"config: {{{key}: false}}\nreplay: {{replicas: 2}}").replay.replicas == 2
    for body in (f"config: {{{key}: false}}", f"config: {{{key}: true}}\nreplay: {{replicas: 2}}"):
        (found,) = problems(manifest(body, "Apex"))
        assert found.path == f"spec.config.{key}"
        assert "leave the former out" in found.message


def test_a_shard_must_hold_a_batch_and_each_learner_needs_a_row_of_it(problems: Problems) -> None:
    (small,) = problems(manifest("config: {buffer_size: 1500, learning_starts: 1000}", "Apex"))
    assert small.path == "spec.config.buffer_size"
    assert "4 shards" in small.message
    assert apex("learners: {replicas: 2}").learners.replicas == 2
    (many,) = problems(manifest("config: {train_batch_size: 4}\nlearners: {replicas: 5}", "Apex"))
    assert many.path == "spec.learners.replicas"
    assert "must not exceed config.train_batch_size (4)" in many.message
    (most,) = problems(manifest("learners: {replicas: 101}", "Apex"))
    assert (most.path, most.message) == ("spec.learners.replicas", "must be at most 100, not 101")


def test_the_first_ape_x_always_runs_free(problems: Problems) -> None:
    assert apex("config: {training_intensity: 4}").config.training_intensity == 4
    (found,) = problems(manifest("config: {training_intensity: 4}", "ApexClassic"))
    assert "use plan Apex" in found.message
