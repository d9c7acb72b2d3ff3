"""Datasets of several agents: each policy learns from its own agents' rows, and what is missing is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidManifest
from rltrain.models.agents import AgentSpaces, Roster, each_its_own
from rltrain.offline.agents import AgentsDataset, prepare_agents
from rltrain.offline.dataset import BadDataset
from rltrain.offline.readers import load_agents, load_dataset
from rltrain.offline.writer import write_npz
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.rollout.parallel_envs import spaces_of
from rltrain.rollout.recording import record
from rltrain.state import Array
from trainer.offline.test_dataset import OBS, PENDULUM, recorded
from trainer.rollout.test_multi_agent import LIVES, roll

AGENTS = ("one", "two", "three")


def roster(*to_train: str, **policies: tuple[str, ...]) -> Roster:
    return Roster(
        policies, to_train or tuple(policies), dict.fromkeys(policies, OBS), dict.fromkeys(policies, PENDULUM)
    )


def columns() -> dict[str, dict[str, Array]]:
    """14 steps of three agents, whose rewards are their places; the third misses the first four."""
    found = {}
    for place, agent in enumerate(AGENTS):
        rows = {**recorded(), c.REWARDS: np.full(14, float(place)), c.ENV_STEP: 10 + 2 * np.arange(14)}
        found[agent] = {name: column[4:] for name, column in rows.items()} if agent == "three" else rows
    return found


def prepared(roster: Roster, given: Mapping[str, Mapping[str, Array]] | None = None) -> AgentsDataset:
    return prepare_agents(columns() if given is None else given, roster, by_step=True)


def test_each_policy_has_the_rows_of_its_own_agents_and_no_episode_goes_on_in_another_agents() -> None:
    found = prepared(roster(a=("one", "three"), b=("two",)))
    a, b = found.batch.policies["a"], found.batch.policies["b"]
    assert (a.count, b.count, found.batch.count) == (14 + 10, 14, 14)
    assert a[c.REWARDS].tolist() == [0.0] * 14 + [2.0] * 10
    assert set(b[c.REWARDS]) == {1.0}
    assert len(set(a[c.ENV_ID])) == 3 + 3, "the third is there from the last step of the first episode"
    assert not set(a[c.ENV_ID][:14]) & set(a[c.ENV_ID][14:])
    assert np.abs(a[c.ACTIONS]).max() <= 1, "as policies scale them"
    assert str(found.summary).startswith("one: 14 transitions, 3 episodes (mean return 0.00)")
    assert found.summary.agents["three"].transitions == 10


def test_rows_of_one_env_step_have_its_number_counted_from_0() -> None:
    found = prepared(roster(a=("one", "three"), b=("two",)))
    assert found.batch.policies["a"][c.ENV_STEP].tolist() == [*range(14), *range(4, 14)]
    assert found.batch.policies["b"][c.ENV_STEP].tolist() == list(range(14))
    late = prepared(roster(a=("three",)))
    assert late.batch.policies["a"][c.ENV_STEP].tolist() == list(range(10)), "steps of those who learn alone count"


def test_agents_whose_policy_stays_as_it_is_need_no_data() -> None:
    some = {"two": columns()["two"]}
    found = prepared(roster("b", a=("one", "three"), b=("two",)), some)
    assert set(found.batch.policies) == {"b"}
    with pytest.raises(BadDataset, match="it has no agent 'one', only two"):
        prepared(roster(a=("one", "three"), b=("two",)), some)


def test_an_agent_that_never_acted_has_no_part_in_it_and_a_policy_of_such_ones_is_refused() -> None:
    given = columns()
    given["three"] = {name: column[:0] for name, column in given["three"].items()}
    assert prepared(roster(a=("one", "three")), given).batch.policies["a"].count == 14
    with pytest.raises(BadDataset, match="no transitions of three, from which policy 'b' is to learn"):
        prepared(roster(a=("one",), b=("three",)), given)


def test_a_single_step_is_an_episode() -> None:
    one = {name: column[:1] for name, column in columns()["one"].items()}
    assert prepared(roster(a=("one",)), {"one": one}).summary.agents["one"].unflagged == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({c.ENV_STEP: None}, "agent 'two' has no column 'env_step', by which replay_mode lockstep goes"),
        ({c.ENV_STEP: np.zeros(14, np.int64)}, "of agent 'two', env_step must be a whole number a row"),
        ({c.ENV_STEP: np.arange(14.0)}, "of agent 'two', env_step must be a whole number a row"),
        ({c.ENV_STEP: np.arange(13)}, "of agent 'two', env_step must be a whole number a row"),
        ({c.OBS: np.zeros((14, 3))}, "of agent 'two', obs has the shape"),
        ({c.OBS: None}, "of agent 'two', .*no column 'obs'"),
    ],
)
def test_what_is_wrong_is_told_with_the_agent_that_it_is_wrong_of(change: dict[str, Any], words: str) -> None:
    given = columns()
    given["two"] = {name: column for name, column in {**given["two"], **change}.items() if column is not None}
    with pytest.raises(BadDataset, match=words):
        prepared(roster(a=("one",), b=("two",)), given)


@pytest.mark.parametrize("policies", [None, {"*": "shared"}], ids=["chance", "shared"])
def test_what_is_recorded_is_written_and_read_by_agent(policies: dict[str, str] | None, tmp_path: Path) -> None:
    env = EnvSpec(id="probes.agents:Roll", kwargs={"lives": LIVES})
    played = record(env, None if policies is None else roll(policies).policy, steps=8, seed=1)
    assert isinstance(played, MultiAgentBatch)
    assert played.count == 12, "whole episodes of 6"
    for place, (agent, lives) in enumerate(LIVES.items()):
        rows = played.policies[agent]
        assert rows.count == 2 * sum(count for _, count in lives)
        assert set(rows[c.OBS][:, 0]) == {place}
        np.testing.assert_array_equal(rows[c.ENV_STEP] % 6, rows[c.OBS][:, 3])
    write_npz(tmp_path / "data.npz", played)
    obs, actions = spaces_of(env)
    assert isinstance(obs, AgentSpaces)
    assert isinstance(actions, AgentSpaces)
    found = load_agents(str(tmp_path / "data.npz"), each_its_own(obs, actions), by_step=True)
    for agent, lives in LIVES.items():
        its = found.summary.agents[agent]
        assert (its.episodes, its.terminated) == (2 * len(lives), 2 * len(lives))
        np.testing.assert_array_equal(found.batch.policies[agent][c.OBS], played.policies[agent][c.OBS])
        np.testing.assert_array_equal(found.batch.policies[agent][c.ENV_STEP], played.policies[agent][c.ENV_STEP])


def test_data_of_one_agent_and_of_several_are_not_taken_for_one_another(tmp_path: Path) -> None:
    alone, several = tmp_path / "alone.npz", tmp_path / "several.npz"
    write_npz(alone, Batch(recorded()))
    write_npz(several, MultiAgentBatch({agent: Batch(rows) for agent, rows in columns().items()}, 14))
    with pytest.raises(InvalidManifest, match=r"of one agent: those of several have columns such as 'one/obs'"):
        load_agents(str(alone), roster(a=("one",)), by_step=False)
    with pytest.raises(InvalidManifest, match="of several agents, one, two, three, and the environment has one"):
        load_dataset(str(several), OBS, PENDULUM)
    with pytest.raises(InvalidManifest, match="a Minari dataset holds the steps of one agent"):
        load_agents(str(tmp_path), roster(a=("one",)), by_step=False)
    assert load_agents(str(several), roster(a=("one",)), by_step=False).batch.count == 14
