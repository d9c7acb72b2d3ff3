"""envpool's environments: exact transitions in spite of their own way to begin again."""

import sys

import gymnasium
import numpy as np
import pytest

from rltrain.api.config import DQNConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, MissingExtra, UnknownEnvironment
from rltrain.rollout import columns as c
from rltrain.rollout.collector import Collector
from rltrain.rollout.environments import make_env, make_native_vector
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

POOL = EnvSpec(id="envpool:CartPole-v1", kwargs={"max_episode_steps": 12})


def test_every_row_is_a_step_of_the_physics_and_no_reset() -> None:
    config = DQNConfig(rollout_fragment_length=50, num_envs_per_worker=4, n_step=1)
    worker = RolloutWorker(WorkerSpec("DQN", POOL, config, seed=0))
    collector = worker._collector
    assert isinstance(collector, Collector)
    assert isinstance(collector._envs, NextStepEnvs)
    for _ in range(4):
        batch = collector.collect(200)
        # Euler's method moves the cart by its velocity; a reset does not.
        position, velocity = batch[c.OBS][:, 0], batch[c.OBS][:, 1]
        np.testing.assert_allclose(batch[c.NEXT_OBS][:, 0], position + 0.02 * velocity, atol=1e-6)
        at_limit = batch[c.T] == 11
        np.testing.assert_array_equal(batch[c.TRUNCATEDS], at_limit)
        out = np.abs(batch[c.NEXT_OBS][:, 2]) > 12 * np.pi / 180
        np.testing.assert_array_equal(batch[c.TERMINATEDS], out & ~at_limit)
        np.testing.assert_array_equal(batch[c.REWARDS], 1)
    assert {record.length for record in worker.drain_episodes()} <= set(range(1, 13))
    worker.close()


def test_a_reset_s_seed_decides_the_episode() -> None:
    def begin(env: "gymnasium.Env[object, object]", seed: int) -> list[object]:
        first = env.reset(seed=seed)[0]
        return [first, *(env.step(np.int64(1))[0] for _ in range(5))]

    one, other = make_env(POOL), make_env(POOL)
    np.testing.assert_array_equal(begin(one, 3), begin(other, 3))
    assert not np.array_equal(begin(one, 3)[0], begin(other, 4)[0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(begin(one, 3), begin(other, 3))


def test_images_have_their_channels_last() -> None:
    spec = EnvSpec(id="envpool:Pong-v5")
    envs = make_native_vector(spec, 2)
    obs, _ = envs.reset(seed=0)
    assert (obs.shape, obs.dtype) == ((2, 84, 84, 4), np.uint8)
    assert envs.single_observation_space == make_env(spec).observation_space
    envs.close()


def test_what_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownEnvironment, match=r"envpool has no environment 'CartPol-v1' .*did you mean .*CartPole"):
        make_env(EnvSpec(id="envpool:CartPol-v1"))
    with pytest.raises(EnvironmentFailed, match=r"'envpool:CartPole-v1' can't be made .*wings"):
        make_env(EnvSpec(id="envpool:CartPole-v1", kwargs={"wings": 2}))
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(MissingExtra, match=r"'envpool:CartPole-v1' needs envpool: pip install 'rltrain\[envpool\]'"):
        make_env(EnvSpec(id="envpool:CartPole-v1"))
