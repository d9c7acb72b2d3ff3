"""Environments that fail are made again in place: what their episodes gave is dropped, and nothing else."""

from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
import pytest

from rltrain.api.config import DDPPOConfig, DQNConfig, R2D2Config
from rltrain.api.env import EnvSpec
from rltrain.api.errors import TooManyRestarts
from rltrain.policies.n_step import continues
from rltrain.replay.make import make_buffer
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.collector import Collector
from rltrain.rollout.faults import Fault, Tolerance, all_finite, not_finite
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.vector import EnvList, VectorEnvs
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import Array
from trainer.rollout.test_collector import random_actions

WORKER = 2


def bad(kind: str, step: int, every: int = 2) -> EnvSpec:
    return EnvSpec(id="probes.envs:Bad", kwargs={"kind": kind, "step": step, "worker": WORKER, "every": every})


def env_list(spec: EnvSpec, count: int) -> VectorEnvs:
    return EnvList(spec, count, seed=0, worker=WORKER, record=False)


def native(spec: EnvSpec, count: int) -> VectorEnvs:
    def make() -> gymnasium.vector.VectorEnv[Array, Array, Array]:
        gymnasium.register("Probe-v0", entry_point=spec.id, disable_env_checker=True)
        try:
            return gymnasium.make_vec("Probe-v0", num_envs=count, vectorization_mode="sync", **spec.kwargs)
        finally:
            gymnasium.registry.pop("Probe-v0")

    return NextStepEnvs(make, spec.id, seed=0, worker=WORKER)


def collector(envs: VectorEnvs, tolerance: Tolerance | None = None) -> Collector:
    return Collector(envs, random_actions(envs.num_envs), WORKER, tolerance=tolerance or Tolerance(1000, 1000))


def check_rows(batch: Batch, before: Batch | None) -> None:
    """Rows are whole episodes' beginnings; what was cut off goes on in no later row."""
    r, t = batch[c.OBS].astype(np.float64).T
    next_r, next_t = batch[c.NEXT_OBS].astype(np.float64).T
    np.testing.assert_array_equal(next_r, r)
    np.testing.assert_allclose(next_t - t, 0.05, atol=1e-6)
    np.testing.assert_allclose(t * 20, batch[c.T], atol=1e-5)
    np.testing.assert_allclose(batch[c.REWARDS], r, atol=1e-6)
    same = (np.diff(batch[c.EPS_ID]) == 0) & (np.diff(batch[c.ENV_ID]) == 0)
    np.testing.assert_array_equal(np.diff(r)[same], 0)
    np.testing.assert_array_equal(np.diff(batch[c.T])[same], 1)
    np.testing.assert_array_equal(continues(batch)[:-1], same & ~batch[c.TRUNCATEDS][:-1])
    # In one batch nobody's unfinished episode is followed by another one.
    unfinished = ~same & (np.diff(batch[c.ENV_ID]) == 0)
    assert batch[c.TRUNCATEDS][:-1][unfinished].all()
    if before is not None:
        ended = set(before[c.EPS_ID][before[c.TRUNCATEDS]].tolist())
        assert not ended & set(batch[c.EPS_ID].tolist())


FAULTS = [
    ("raise", 3, "RuntimeError"),
    ("raise", 0, "RuntimeError"),
    ("raise", 20, "RuntimeError"),
    ("exit", 3, "SystemExit"),
    ("reward", 1, "reward"),
    ("reward", 20, "reward"),
    ("observation", 3, "observation"),
    ("observation", 0, "observation"),
    ("shape", 3, "ValueError"),
]


@pytest.mark.parametrize("make", [env_list, native])
@pytest.mark.parametrize(("kind", "step", "name"), FAULTS)
def test_batches_stay_exact_and_whole_whatever_environments_do(
    make: Callable[[EnvSpec, int], VectorEnvs], kind: str, step: int, name: str
) -> None:
    each = collector(make(bad(kind, step, every=3), 3))
    batches: list[Batch] = []
    for size in (40, 7, 1, 60, 33):
        batch = each.collect(size)
        assert batch.count == size
        check_rows(batch, batches[-1] if batches else None)
        batches.append(batch)
    every = Batch.concat(batches)
    episodes = np.unique(np.stack([every[c.EPS_ID], every[c.OBS][:, 0] * (1 << 20)]).astype(np.int64), axis=1)
    assert len(np.unique(episodes[0])) == episodes.shape[1], "an episode's number is no other one's"
    report = each.drain_faults()
    assert {fault.kind for fault in report.restarts} == {name}
    assert (report.episodes_dropped > 0) == (step > (0 if make is native else 1))
    assert all(f"failed in worker {WORKER}" in fault.message for fault in report.restarts)
    assert each.drain_faults().restarts == ()


def test_finished_episodes_and_the_other_environments_rows_stay() -> None:
    each = collector(env_list(bad("raise", 5, every=2), 4))
    batch = each.collect(400)
    faults, finished = each.drain_faults(), each.drain_episodes()
    assert faults.episodes_dropped == len(faults.restarts) > 0
    # Every episode that finished is there as a whole, and every other one is still open.
    counts = np.unique(batch[c.EPS_ID], return_counts=True)[1]
    assert sum(counts == 20) + 4 >= len(finished) >= sum(counts == 20)
    assert sum(counts < 20) <= 4
    np.testing.assert_allclose(sorted(record.length for record in finished), 20)


def test_only_the_environment_that_failed_is_made_again_and_its_old_one_closed() -> None:
    envs = EnvList(bad("raise", 1, every=2), 6, seed=0, worker=WORKER, record=False)
    envs.reset()
    before = list(envs._envs)
    closed: list[int] = []
    for index, env in enumerate(before):
        env.close = lambda index=index: closed.append(index)  # type: ignore[method-assign, misc]
    valid = envs.step(np.zeros(6, np.int64)).valid
    assert valid is not None
    failed = sorted(fault.env for fault in envs.faults)
    assert 0 < len(failed) < 6
    assert valid.tolist() == [index not in failed for index in range(6)]
    obs = envs.obs.copy()
    begun = envs.restart()
    assert np.flatnonzero(begun).tolist() == failed == closed
    assert [envs._envs[index] is before[index] for index in range(6)] == valid.tolist()
    np.testing.assert_array_equal(envs.obs[valid], obs[valid])
    assert (envs.obs[begun, 1] == 0).all()
    assert not envs.faults


def test_a_native_vector_is_made_again_as_a_whole() -> None:
    each = collector(native(bad("reward", 3, every=3), 3))
    batch = each.collect(60)
    report = each.drain_faults()
    assert report.episodes_dropped > len(report.restarts)
    message = report.restarts[0].message
    assert "(3 as one vector) failed in worker 2, step 2 after its reset 0: environment " in message
    assert message.endswith("'s reward isn't finite")
    assert set(batch[c.T][batch[c.TRUNCATEDS]].tolist()) <= {19}


def test_the_policy_is_told_where_episodes_begin_anew() -> None:
    told: list[list[int]] = []
    envs = env_list(bad("raise", 2, every=2), 3)
    each = Collector(
        envs, random_actions(3), WORKER, lambda rows: told.append(np.flatnonzero(rows).tolist()), Tolerance(99, 999)
    )
    each.collect(6)
    restarted = [fault.env for fault in each.drain_faults().restarts]
    assert restarted
    # At the start; then, for each, that its row is no transition, and that an episode begins.
    assert told[0] == [0, 1, 2]
    later = [env for envs_told in told[1:] for env in envs_told]
    assert sorted(later) == sorted(restarted * 2)


def test_what_cannot_be_made_again_is_tried_until_it_is_too_much() -> None:
    envs = EnvList(bad("raise", 1, every=1), 1, seed=0, worker=WORKER, record=False)
    each = Collector(envs, random_actions(1), WORKER, tolerance=Tolerance(3, 100))
    envs._spec = EnvSpec(id="trainer.runtime.flaky:Broken")
    with pytest.raises(
        TooManyRestarts, match=r"no licence; .* failed 4 times within 100 steps, and env.maxRestarts allows 3"
    ):
        each.collect(1)


def bear(steps: Sequence[int], restarts: int, window: int) -> None:
    tolerance = Tolerance(restarts, window)
    for step in steps:
        tolerance.bear(Fault("reward", "it broke"), step)


def test_faults_that_lie_far_apart_are_borne_for_ever() -> None:
    bear([0, 50, 100, 150, 200], restarts=2, window=100)
    with pytest.raises(TooManyRestarts, match=r"it broke; .* failed 3 times"):
        bear([0, 50, 99], restarts=2, window=100)
    with pytest.raises(TooManyRestarts, match=r"^it broke$"):
        bear([0], restarts=0, window=100)


def test_a_saved_collector_remembers_its_faults() -> None:
    def make() -> Collector:
        return collector(env_list(bad("raise", 3, every=2), 2), Tolerance(9, 10_000))

    first, second = make(), make()
    first.collect(20)
    seen = len(first.drain_faults().restarts)
    second.set_state(first.get_state(), open_episodes=False)
    with pytest.raises(TooManyRestarts, match="failed 10 times"):
        second.collect(10_000)
    assert 0 < seen < 10
    assert len(second.drain_faults().restarts) == 9 - seen


def worker(plan: str, config: DQNConfig | DDPPOConfig | R2D2Config, kind: str, step: int) -> RolloutWorker:
    env = bad(kind, step, every=3).model_copy(update={"max_restarts": 1000})
    return RolloutWorker(WorkerSpec(plan, env, config, seed=1, index=WORKER, num_workers=2))


@pytest.mark.parametrize("step", [0, 2, 5, 20])
def test_n_step_returns_take_no_reward_of_another_episode(step: int) -> None:
    config = DQNConfig(rollout_fragment_length=7, num_envs_per_worker=3, n_step=3, gamma=0.5)
    each = worker("DQN", config, "raise", step)
    for _ in range(20):
        batch = each.sample()
        assert batch.count == 21
        assert (batch[c.DISCOUNTS] > 0).all(), "nothing has terminated"
        k = np.round(np.log2(1 / batch[c.DISCOUNTS]))
        np.testing.assert_allclose(batch[c.REWARDS], batch[c.OBS][:, 0] * (2 - 0.5 ** (k - 1)), rtol=1e-5)
        np.testing.assert_allclose((batch[c.NEXT_OBS] - batch[c.OBS])[:, 1] * 20, k, atol=1e-5)
    assert each.drain_faults().restarts


def test_advantages_come_of_their_own_episode_alone() -> None:
    config = DDPPOConfig(
        rollout_fragment_length=30, num_envs_per_worker=2, sgd_minibatch_size=10, num_sgd_iter=1, gamma=0.9
    )
    each = worker("DDPPO", config, "raise", 5)
    for _ in range(5):
        batch = each.sample()
        assert batch.count == 60
        goes_on = continues(batch)
        following = np.append(batch[c.ADVANTAGES][1:], 0) * goes_on
        # What a row's advantage has beyond the next one's is its own step's, bootstrapped from its own next value.
        own = batch[c.ADVANTAGES] - 0.9 * following
        inside = np.flatnonzero(goes_on)
        expected = batch[c.REWARDS] + 0.9 * np.append(batch[c.VF_PREDS][1:], 0) - batch[c.VF_PREDS]
        np.testing.assert_allclose(own[inside], expected[inside], atol=1e-4)
        assert (np.abs(own) < 5).all()
    assert each.drain_faults().restarts


def test_no_sequence_joins_two_episodes() -> None:
    config = R2D2Config(
        policy="R2D2", num_envs_per_worker=3, rollout_fragment_length=4, burn_in=2, buffer_size=1000, learning_starts=1
    )
    each = worker("OffPolicy", config, "raise", 6)
    replay = make_buffer(config, seed=0)
    for _ in range(40):
        replay.add(each.sample())
    assert each.drain_faults().restarts
    drawn = replay.sample(200)
    assert drawn is not None
    for obs, start, count in zip(drawn[c.OBS], drawn[c.START], drawn[c.SEQ_LENS], strict=True):
        rows = obs[start : config.burn_in + count + 1]
        assert len(np.unique(rows[:, 0])) == 1
        np.testing.assert_allclose(np.diff(rows[:, 1]), 0.05, atol=1e-6)


@pytest.mark.parametrize("bad", [1e300, -1e300, 3.5e38, np.inf, -np.inf, np.nan])
def test_numbers_that_float32_cannot_hold_are_not_finite(bad: float) -> None:
    rewards = np.array([1.0, bad, -3e38])
    assert not all_finite(rewards)
    assert not_finite(reward=rewards) == [(1, "reward")]
    assert not_finite(observation=np.array([[1.0, 2.0], [-bad, bad]])) == [(1, "observation")]
    assert all_finite(np.array([3e38, -3e38]))
    assert all_finite(np.array([3e38, -3e38], np.float32)), "though the sum of their squares isn't"
