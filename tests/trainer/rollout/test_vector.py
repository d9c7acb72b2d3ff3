"""Exact transitions from both kinds of vector environments."""

import re

import gymnasium
import numpy as np
import pytest

from rltrain.api.env import EnvSpec
from rltrain.api.errors import CheckpointMismatch, EnvironmentFailed
from rltrain.rollout.environments import VectorEnv
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.vector import EnvList, VectorEnvs, episode_seed


def env_list(env_id: str, count: int = 2, record: bool = True, **kwargs: object) -> EnvList:
    envs = EnvList(EnvSpec(id=env_id, kwargs=dict(kwargs)), count, seed=5, worker=1, record=record)
    envs.reset()
    return envs


class Seeded(gymnasium.vector.VectorWrapper):
    """A vector environment whose first reset has the seed of the case."""

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        return self.env.reset(seed=0, options=options)


def test_reset_rows_of_next_step_autoreset_are_no_transitions() -> None:
    sync: VectorEnv = gymnasium.make_vec("CartPole-v1", num_envs=8, vectorization_mode="sync")
    envs = NextStepEnvs(lambda: Seeded(sync), "CartPole-v1", seed=0, worker=0)
    envs.reset()
    rng = np.random.default_rng(0)
    transitions = 0
    for _ in range(2000):
        valid = envs.step(rng.integers(2, size=8)).valid
        transitions += 8 if valid is None else int(valid.sum())
    assert transitions == 15_307


@pytest.mark.parametrize("kind", ["list", "native"])
def test_a_step_after_an_end_begins_the_next_episode(kind: str) -> None:
    envs: VectorEnvs
    if kind == "list":
        envs = env_list("CartPole-v1")
    else:
        native: VectorEnv = gymnasium.make_vec("CartPole-v1", num_envs=2)
        envs = NextStepEnvs(lambda: native, "CartPole-v1", seed=0, worker=0)
        envs.reset()
    ends = 0
    for _ in range(200):
        before = envs.obs.copy()
        step = envs.step(np.array([0, 1]))
        valid = np.ones(2, bool) if step.valid is None else step.valid
        position, velocity = before[:, 0], before[:, 1]
        # Euler's method moves the cart by its velocity; a reset does not.
        np.testing.assert_allclose(step.next_obs[valid, 0], (position + 0.02 * velocity)[valid], atol=1e-6)
        out = np.abs(step.next_obs[:, 2]) > 12 * np.pi / 180
        np.testing.assert_array_equal(step.terminateds[valid], out[valid])
        ends += int(step.terminateds.sum())
    assert ends > 20


def test_the_final_observation_is_kept_where_an_episode_ends() -> None:
    envs = env_list("probes.envs:Count", length=3)
    for t in (1, 2, 3, 1, 2, 3):
        step = envs.step(np.array([0, 0]))
        assert step.next_obs[:, 1].tolist() == [t, t]
        assert step.terminateds.tolist() == [t == 3] * 2
    assert envs.obs.tolist() == [[2, 0], [2, 0]]


def test_every_episode_has_its_own_seed() -> None:
    seeds = {episode_seed(1, worker, env, episode) for worker in range(3) for env in range(3) for episode in range(30)}
    assert len(seeds) == 270
    envs = env_list("CartPole-v1", count=3)
    assert len(np.unique(envs.obs, axis=0)) == 3


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_open_episodes_are_taken_up_where_they_were(env_id: str) -> None:
    rng = np.random.default_rng(0)

    def action(envs: EnvList) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        return np.array([envs.action_space.sample() for _ in range(2)])

    envs = env_list(env_id)
    envs.action_space.seed(int(rng.integers(99)))
    for _ in range(37):
        envs.step(action(envs))
    copy = env_list(env_id)
    copy.set_state(envs.get_state())
    np.testing.assert_array_equal(copy.obs, envs.obs)
    for _ in range(60):
        actions = action(envs)
        first, second = envs.step(actions), copy.step(actions)
        for mine, other in zip(first[:4], second[:4], strict=True):
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(copy.obs, envs.obs)


def test_without_recording_a_saved_state_begins_episodes_not_seen_before() -> None:
    envs = env_list("CartPole-v1", record=False)
    first = envs.obs.copy()
    copy = env_list("CartPole-v1", record=False)
    copy.set_state(envs.get_state())
    assert not np.array_equal(copy.obs, first)


def test_an_environment_that_cannot_be_replayed_says_so() -> None:
    envs = env_list("probes.envs:Count", length=3)
    for _ in range(8):
        envs.step(np.array([0, 0]))
    with pytest.raises(EnvironmentFailed, match="isn't a function of its reset's seed and its actions"):
        env_list("probes.envs:Count", length=3).set_state(envs.get_state())


def test_a_state_of_another_number_of_environments_is_refused() -> None:
    with pytest.raises(CheckpointMismatch, match="had 2 environments, this one 3"):
        env_list("CartPole-v1", count=3).set_state(env_list("CartPole-v1").get_state())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("raise", "RuntimeError: this probe raises"),
        ("exit", "SystemExit: 0"),
        ("reward", "its reward isn't finite"),
        ("observation", "its observation isn't finite"),
        ("shape", r"shape \(3,\), the space says \(2,\)"),
    ],
)
def test_a_failing_environment_is_named_with_worker_environment_and_step(kind: str, words: str) -> None:
    envs = env_list("probes.envs:Bad", count=1, kind=kind, step=3, worker=1)
    for _ in range(2):
        assert envs.step(np.array([0])).valid is None
    assert envs.step(np.array([0])).valid == [False]
    (fault,) = envs.faults
    assert re.search(rf"worker 1, environment 0, step 2 of its episode 0 .*{words}", fault.message)


def test_observations_of_another_dtype_become_the_space_s() -> None:
    envs = env_list("probes.envs:Bad", count=1, kind="float64", step=1, worker=1)
    next_obs = envs.step(np.array([0])).next_obs
    assert next_obs.dtype == np.float32
    np.testing.assert_allclose(next_obs, 0.1)
