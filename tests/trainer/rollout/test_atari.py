"""Atari games, prepared one by one and as their own vector."""

import sys
from typing import Any

import numpy as np
import pytest

from rltrain.api.config import DQNConfig
from rltrain.api.env import AtariSpec, EnvSpec
from rltrain.api.errors import MissingExtra, UnknownEnvironment
from rltrain.rollout import columns as c
from rltrain.rollout.environments import make_env, make_native_vector
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.vector import EnvList
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

# Without chance, so that games can be compared.
SURE: dict[str, Any] = {"repeat_action_probability": 0.0}


def breakout(**options: Any) -> EnvSpec:
    return EnvSpec(id="ALE/Breakout-v5", kwargs=SURE, atari=AtariSpec(noop_max=0, **options))


def test_observations_are_stacked_gray_screens_as_bytes() -> None:
    env = make_env(EnvSpec(id="ALE/Pong-v5", atari=AtariSpec()))
    obs, _ = env.reset(seed=0)
    assert (obs.shape, obs.dtype) == ((84, 84, 4), np.uint8)
    assert env.observation_space.contains(obs)
    assert not obs[:, :, :3].any()
    assert obs[:, :, 3].any()
    following = env.step(0)[0]
    np.testing.assert_array_equal(following[:, :, 2], obs[:, :, 3])


@pytest.mark.parametrize("lives", [True, False])
def test_the_games_own_vector_gives_what_single_games_give(lives: bool) -> None:
    spec = breakout(terminal_on_life_loss=lives, clip_rewards=False)
    vector = NextStepEnvs(lambda: make_native_vector(spec, 2), spec.id, seed=0, worker=0)
    single = EnvList(spec, 2, seed=0, worker=0, record=False)
    assert vector.observation_space == single.observation_space
    for envs in (vector, single):
        envs.reset()
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(250):
        np.testing.assert_array_equal(vector.obs, single.obs)
        actions = rng.integers(4, size=2)
        its = vector.step(actions)
        if its.valid is not None and not its.valid.all():
            ends += 1
            break
        mine = single.step(actions)
        for name in ("next_obs", "rewards", "terminateds", "truncateds"):
            np.testing.assert_array_equal(getattr(its, name), getattr(mine, name))
        if mine.terminateds.any():
            ends += 1
            break
    assert ends
    vector.close()


def test_training_ends_with_a_life_and_evaluation_with_the_game() -> None:
    spec = breakout(terminal_on_life_loss=True)
    lengths = []
    for each in (spec, spec.scored()):
        env = make_env(each)
        env.reset(seed=0)
        steps, over = 0, False
        while not over:
            over = bool(env.step(1)[2])
            steps += 1
        lengths.append(steps)
    assert lengths[1] > 2 * lengths[0]
    assert spec.scored().atari == AtariSpec(noop_max=0, terminal_on_life_loss=False, clip_rewards=False)
    assert EnvSpec(id="CartPole-v1").scored() == EnvSpec(id="CartPole-v1")


def test_rewards_are_clipped_to_their_sign_while_training() -> None:
    rewards = {}
    for clip in (True, False):
        spec = EnvSpec(id="ALE/MsPacman-v5", kwargs=SURE, atari=AtariSpec(noop_max=0, clip_rewards=clip))
        env = make_env(spec)
        env.reset(seed=0)
        rewards[clip] = np.array([env.step(action)[1] for action in [3] * 40 + [2] * 40])
    assert rewards[False].max() >= 10
    np.testing.assert_array_equal(rewards[True], np.sign(rewards[False]))


@pytest.mark.parametrize("vectorize", ["Auto", "Sequential"])
def test_dqn_learns_from_stacked_screens_in_n_steps(vectorize: Any) -> None:
    env = EnvSpec(id="ALE/Breakout-v5", atari=AtariSpec(), vectorize=vectorize)
    config = DQNConfig(rollout_fragment_length=4, num_envs_per_worker=2, n_step=3, hiddens=(8,), compile="Never")
    worker = RolloutWorker(WorkerSpec("DQN", env, config, seed=0))
    assert isinstance(worker._collector._envs, NextStepEnvs if vectorize == "Auto" else EnvList)  # type: ignore[union-attr]
    for _ in range(3):
        batch = worker.sample()
        assert batch.count == 8
        assert batch[c.OBS].dtype == batch[c.NEXT_OBS].dtype == np.uint8
        assert np.isfinite(list(worker.policy.learn_on_batch(batch).stats.values())).all()
    worker.close()


def test_what_is_no_game_is_refused() -> None:
    with pytest.raises(UnknownEnvironment, match=r"Atari games such as ALE/Pong-v5; 'CartPole-v1' is none"):
        make_env(EnvSpec(id="CartPole-v1", atari=AtariSpec()))
    with pytest.raises(UnknownEnvironment, match=r"did you mean .*ALE/Pong-v5"):
        make_env(EnvSpec(id="ALE/Pogn-v5", atari=AtariSpec()))


def test_the_extra_that_games_need_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(MissingExtra, match=r"Atari games need ale_py: pip install 'rltrain\[atari\]'"):
        make_env(EnvSpec(id="ALE/Pong-v5"))
