"""Batches of an exact size, without reset rows, from a scripted policy."""

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest

from rltrain.api.env import EnvSpec
from rltrain.rollout import columns as c
from rltrain.rollout.collector import Act, Collector
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.vector import EnvList, VectorEnvs
from rltrain.state import Array


def random_actions(count: int) -> Act:
    rng = np.random.default_rng(0)

    def act(obs: Array) -> tuple[Array, Array, dict[str, Array]]:
        actions = rng.integers(2, size=count)
        return actions, actions, {c.ACTION_LOGP: np.full(count, np.log(0.5), np.float32)}

    return act


def env_list(env_id: str, count: int, **kwargs: object) -> VectorEnvs:
    return EnvList(EnvSpec(id=env_id, kwargs=dict(kwargs)), count, seed=0, worker=2, record=False)


def next_step(env_id: str, count: int, **kwargs: object) -> VectorEnvs:
    gymnasium.register("Probe-v0", entry_point=env_id)
    try:
        envs = gymnasium.make_vec("Probe-v0", num_envs=count, vectorization_mode="sync", **kwargs)  # type: ignore[arg-type]
    finally:
        gymnasium.registry.pop("Probe-v0")
    return NextStepEnvs(lambda: envs, env_id, seed=0, worker=2)


KINDS = pytest.mark.parametrize("make", [env_list, next_step])


@KINDS
@pytest.mark.parametrize("terminate", [True, False])
def test_each_row_is_one_step_of_one_episode(make: Callable[..., VectorEnvs], terminate: bool) -> None:
    collector = Collector(make("probes.envs:Count", 3, length=4, terminate=terminate), random_actions(3), worker=2)
    for _ in range(10):
        batch = collector.collect(25)
        assert batch.count == 25
        episode, t = batch[c.OBS].T
        next_episode, next_t = batch[c.NEXT_OBS].T
        np.testing.assert_array_equal(next_t - t, 1)
        np.testing.assert_array_equal(next_episode, episode)
        np.testing.assert_array_equal(batch[c.T], t)
        ended, other = (c.TERMINATEDS, c.TRUNCATEDS) if terminate else (c.TRUNCATEDS, c.TERMINATEDS)
        np.testing.assert_array_equal(batch[ended], next_t == 4)
        assert not batch[other].any()


@KINDS
def test_no_transition_is_lost_or_doubled_between_batches(make: Callable[..., VectorEnvs]) -> None:
    collector = Collector(make("probes.envs:Count", 3, length=4), random_actions(3), worker=0)
    seen: dict[int, list[tuple[float, float]]] = {0: [], 1: [], 2: []}
    for size in (7, 1, 20, 3, 29):
        batch = collector.collect(size)
        for env, (episode, t) in zip(batch[c.ENV_ID].tolist(), batch[c.OBS].tolist(), strict=True):
            seen[env].append((episode, t))
    assert sum(len(rows) for rows in seen.values()) == 60
    for rows in seen.values():
        assert rows == [(i // 4, i % 4) for i in range(len(rows))]


@KINDS
def test_rows_of_one_environment_are_together_and_in_order(make: Callable[..., VectorEnvs]) -> None:
    collector = Collector(make("probes.envs:Short", 4), random_actions(4), worker=0)
    for _ in range(5):
        batch = collector.collect(33)
        assert (np.diff(batch[c.ENV_ID]) >= 0).all()
        same = (np.diff(batch[c.ENV_ID]) == 0) & (np.diff(batch[c.EPS_ID]) == 0)
        np.testing.assert_array_equal(np.diff(batch[c.T])[same], 1)
        ended = (batch[c.TERMINATEDS] | batch[c.TRUNCATEDS])[:-1]
        assert not (ended & same).any()


@KINDS
def test_episodes_are_recorded_once_with_return_and_length(make: Callable[..., VectorEnvs]) -> None:
    collector = Collector(make("probes.envs:Short", 4), random_actions(4), worker=0)
    batches = [collector.collect(50) for _ in range(4)]
    records = collector.drain_episodes()
    assert collector.drain_episodes() == []
    ends = sum(int(batch[c.TERMINATEDS].sum()) for batch in batches)
    assert ends <= len(records) <= ends + 3, "an end may be in the rows carried over"
    assert all(record.return_ == record.length and 1 <= record.length <= 5 for record in records)


def test_episode_ids_of_workers_do_not_meet() -> None:
    ids = [
        set(Collector(env_list("probes.envs:Short", 2), random_actions(2), worker).collect(100)[c.EPS_ID].tolist())
        for worker in (0, 1, 2)
    ]
    assert len(ids[0] | ids[1] | ids[2]) == sum(len(each) for each in ids)


def test_a_batch_stays_as_it_was_when_collecting_goes_on() -> None:
    collector = Collector(env_list("probes.envs:Count", 1), random_actions(1), worker=0)
    batch = collector.collect(5)
    before = {name: column.copy() for name, column in batch.columns.items()}
    collector.collect(50)
    for name, column in batch.columns.items():
        np.testing.assert_array_equal(column, before[name])


def test_columns_have_the_documented_dtypes() -> None:
    batch = Collector(env_list("probes.envs:Count", 2), random_actions(2), worker=0).collect(6)
    dtypes = {name: column.dtype for name, column in batch.columns.items()}
    assert dtypes == {
        c.OBS: np.float32,
        c.NEXT_OBS: np.float32,
        c.ACTIONS: np.int64,
        c.REWARDS: np.float32,
        c.TERMINATEDS: bool,
        c.TRUNCATEDS: bool,
        c.EPS_ID: np.int64,
        c.T: np.int64,
        c.ENV_ID: np.int64,
        c.ACTION_LOGP: np.float32,
    }
