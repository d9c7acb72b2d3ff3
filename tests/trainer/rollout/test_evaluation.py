"""Evaluation runs whole episodes with seeds of its own."""

from typing import Any

import pytest

from rltrain.api.config import DDPPOConfig, DQNConfig, ExplorationConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.rollout.evaluation import NUM_ENVS, evaluate
from rltrain.rollout.recording import record
from rltrain.rollout.subprocesses import ProcessEnvs, one_env
from rltrain.rollout.vector import EnvList
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

CONFIG = DQNConfig(exploration_config=ExplorationConfig(initial_epsilon=1.0, final_epsilon=1.0))


def played(env: EnvSpec, episodes: int, seed: int, **options: Any) -> list[tuple[float, int]]:
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0, num_workers=1)).policy
    return [(record.return_, record.length) for record in evaluate(policy, env, episodes, seed, **options)]


@pytest.mark.parametrize("episodes", [1, 3, NUM_ENVS, NUM_ENVS + 3])
def test_as_many_whole_episodes_are_run_as_asked_for(episodes: int) -> None:
    assert played(EnvSpec(id="probes.envs:Const"), episodes, seed=1) == [(10.0, 10)] * episodes


def test_the_same_seed_gives_the_same_returns_and_another_others() -> None:
    cartpole = EnvSpec(id="CartPole-v1")
    first = played(cartpole, 8, seed=1)
    assert played(cartpole, 8, seed=1) == first
    assert played(cartpole, 8, seed=2) != first


@pytest.mark.parametrize("env_id", ["CartPole-v1", "probes.envs:Short"])
def test_episodes_are_the_same_for_any_number_of_environments_and_of_episodes(env_id: str) -> None:
    env = EnvSpec(id=env_id)
    one_by_one = played(env, 40, seed=3, num_envs=1)
    assert len({length for _, length in one_by_one}) > 3, "some are short and some are long"
    assert [played(env, 40, seed=3, num_envs=count) for count in (3, NUM_ENVS)] == [one_by_one] * 2
    assert played(env, 5, seed=3) == one_by_one[:5]


def test_best_actions_are_taken_even_by_a_policy_that_explores() -> None:
    env = EnvSpec(id="probes.envs:Identity")
    policy = RolloutWorker(WorkerSpec("DQN", env, CONFIG, seed=0)).policy
    first, second = ([record.return_ for record in evaluate(policy, env, 5, seed=3)] for _ in range(2))
    assert first == second, "nothing random is left"


def test_whoever_watches_is_told_of_every_step_up_to_the_last_episode() -> None:
    told: list[tuple[int, int]] = []
    played(EnvSpec(id="probes.envs:Const"), 20, seed=1, watch=lambda done, steps: told.append((done, steps)))
    assert told[0] == (0, NUM_ENVS)
    assert told[-1] == (20, 200)


@pytest.mark.parametrize("kind", ["reward", "observation", "raise"])
def test_environment_that_misbehaves_is_named_with_its_step(kind: str) -> None:
    env = EnvSpec(id="probes.envs:Bad", kwargs={"kind": kind})
    with pytest.raises(EnvironmentFailed, match=r"'probes.envs:Bad' .*step [23] of (its )?episode 0"):
        played(env, 2, seed=0)


APART: dict[str, Any] = {"step_timeout_seconds": 30.0}


@pytest.mark.parametrize("env_id", ["CartPole-v1", "probes.agents:Tell"])
def test_episodes_are_the_same_where_environments_have_processes(env_id: str) -> None:
    each = RolloutWorker(WorkerSpec("DDPPO", EnvSpec(id=env_id), DDPPOConfig(), seed=3, num_workers=1))
    own = evaluate(each.policy, EnvSpec(id=env_id), 3, seed=5)
    assert evaluate(each.policy, EnvSpec(id=env_id, **APART), 3, seed=5, num_envs=2) == own


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("probes.envs:Bad", {"kind": "hang", "step": 3}),
        ("probes.agents:Stuck", {"kind": "hang", "at": 3, "lives": {"stays": [(0, 6)]}}),
        ("probes.agents:Stuck", {"kind": "hang", "at": 0, "lives": {"stays": [(0, 6)]}}),
    ],
    ids=["one agent", "several agents", "several agents, in the reset"],
)
def test_one_that_hangs_ends_an_evaluation_past_the_limit_of_a_step_saying_where(
    env_id: str, kwargs: dict[str, Any]
) -> None:
    env = EnvSpec(id=env_id, kwargs=kwargs, step_timeout_seconds=1.0)
    each = RolloutWorker(WorkerSpec("DDPPO", env, DDPPOConfig(), seed=3, num_workers=1))
    step = max(kwargs.get("at", 3) - 1, 0)
    words = rf"step {step} of its episode 7 \(seed \d+\): there is no answer within the time limit \(1 s a step\)"
    with pytest.raises(EnvironmentFailed, match=words):
        evaluate(each.policy, env, 1, seed=5, first=7)


@pytest.mark.parametrize("kind", ["probes.envs:Bad", "probes.agents:Stuck"])
def test_a_recording_is_limited_as_well(kind: str) -> None:
    kwargs = {"kind": "hang", **({"lives": {"stays": [(0, 6)]}} if "Stuck" in kind else {})}
    env = EnvSpec(id=kind, kwargs=kwargs, step_timeout_seconds=1.0)
    with pytest.raises(EnvironmentFailed, match="no answer within the time limit"):
        record(env, None, steps=10, seed=0)


@pytest.mark.parametrize("options", [{"vectorize": "Subprocess"}, APART, {}], ids=["apart", "limited", "here"])
def test_one_env_is_apart_where_sampling_has_its_own_apart(options: dict[str, Any]) -> None:
    envs = one_env(EnvSpec(id="CartPole-v1", **options), seed=0, worker=0)
    assert isinstance(envs, ProcessEnvs if options else EnvList)
    envs.close()
