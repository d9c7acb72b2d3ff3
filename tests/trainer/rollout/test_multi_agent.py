"""Who gets which rows: agents that come and go, their policies, and what an environment must not do."""

from typing import Any

import numpy as np
import pytest

from probes.agents import Breaks
from rltrain.api.config import DDPPOConfig, MultiAgentConfig, PlanConfig, R2D2Config, RecurrentModelConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, InvalidManifest, UnknownEnvironment
from rltrain.replay.make import make_buffer
from rltrain.rollout import columns as c
from rltrain.rollout.evaluation import evaluate
from rltrain.rollout.multi_agent import MultiAgentCollector
from rltrain.rollout.multi_agent_batch import MultiAgentBatch
from rltrain.rollout.parallel_envs import spaces_of
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import content_hash

# One is there all the time, one goes early, one comes late, one comes twice. An episode has 6 steps.
LIVES = {"stays": [(0, 6)], "goes": [(0, 2)], "comes": [(3, 3)], "twice": [(1, 2), (4, 2)]}
OWN = {"stays": "a", "goes": "b", "comes": "b", "twice": "c"}


def worker(env_id: str, config: PlanConfig | None = None, plan: str = "DDPPO", **kwargs: Any) -> RolloutWorker:
    options = {"multiagent": kwargs.pop("multiagent", None)}
    config = config or DDPPOConfig(rollout_fragment_length=9, num_envs_per_worker=2, **options)
    max_restarts = kwargs.pop("max_restarts", 0)
    env = EnvSpec(id=env_id, kwargs=kwargs, max_restarts=max_restarts)
    return RolloutWorker(WorkerSpec(plan, env, config, seed=3, index=2, serial=True))


def roll(policies: dict[str, str] = OWN, **kwargs: Any) -> RolloutWorker:
    block = MultiAgentConfig(policy_mapping=policies)
    return worker("probes.agents:Roll", multiagent=block, lives=kwargs.pop("lives", LIVES), **kwargs)


def collected(each: RolloutWorker, steps: int) -> MultiAgentBatch:
    collector = each._collector
    assert isinstance(collector, MultiAgentCollector)
    return collector.collect(steps)


def test_each_row_is_one_step_of_one_agent_in_the_batch_of_its_policy() -> None:
    batch = collected(roll(), 2 * 6)
    assert batch.count == batch.steps == 12
    agents = list(LIVES)
    for policy, rows in batch.policies.items():
        mine = [agent for agent in agents if OWN[agent] == policy]
        assert rows.count == 2 * sum(count for agent in mine for _, count in LIVES[agent])
        own, life, t, of_episode = rows[c.OBS].T
        assert {agents[int(each)] for each in own} == set(mine)
        np.testing.assert_array_equal(rows[c.T], t)
        np.testing.assert_array_equal(rows[c.REWARDS], own + 1)
        np.testing.assert_array_equal(rows[c.NEXT_OBS], rows[c.OBS] + [0, 0, 1, 1])
        np.testing.assert_array_equal(rows[c.ENV_STEP] // 2, of_episode)
        ends = [t + 1 == LIVES[agents[int(a)]][int(i)][1] for a, i, t in zip(own, life, t, strict=True)]
        np.testing.assert_array_equal(rows[c.TERMINATEDS], ends)


@pytest.mark.parametrize("policies", [OWN, {"*": "shared"}], ids=["own", "shared"])
def test_an_agents_rows_are_together_and_each_of_its_lives_is_an_episode_of_its_own(policies: dict[str, str]) -> None:
    each = roll(policies, lives={**LIVES, "stays too": [(0, 6)]} if "*" in policies else LIVES)
    episodes: dict[int, tuple[str, int, float, float]] = {}
    for steps in (4, 10, 2, 30, 8):
        for policy, rows in collected(each, steps).policies.items():
            same = np.diff(rows[c.ENV_ID]) == 0
            assert (np.diff(rows[c.ENV_ID]) >= 0).all()
            ends = (rows[c.TERMINATEDS] | rows[c.TRUNCATEDS])[:-1]
            np.testing.assert_array_equal(np.diff(rows[c.EPS_ID])[same] != 0, ends[same])
            np.testing.assert_array_equal(np.diff(rows[c.T])[same & ~ends], 1)
            np.testing.assert_array_equal(rows[c.EPS_ID] // c.EPISODES_PER_WORKER, 2)
            for eps_id, seat, (own, life, _, _) in zip(rows[c.EPS_ID], rows[c.ENV_ID], rows[c.OBS], strict=True):
                who = (policy, int(seat), own, life)
                assert episodes.setdefault(int(eps_id), who) == who


def test_a_cut_agent_keeps_its_last_observation_and_is_no_terminated_one() -> None:
    rows = collected(roll(truncate=["goes", "twice"]), 12).policies
    b, twice = rows["b"], rows["c"]
    np.testing.assert_array_equal(b[c.TRUNCATEDS], (b[c.OBS][:, 0] == 1) & (b[c.OBS][:, 2] == 1))
    np.testing.assert_array_equal(twice[c.TRUNCATEDS], twice[c.OBS][:, 2] == 1)
    assert not twice[c.TERMINATEDS].any()
    np.testing.assert_array_equal(twice[c.NEXT_OBS][twice[c.TRUNCATEDS]][:, 2], 2)


def test_only_a_terminated_agent_may_go_without_a_last_observation() -> None:
    rows = collected(roll(tell_last=False), 12).policies["a"]
    assert np.isfinite(rows[c.NEXT_OBS]).all()
    with pytest.raises(EnvironmentFailed, match="'goes' acted, hasn't terminated and got no observation"):
        collected(roll(tell_last=False, truncate=["goes"]), 12)


def test_an_episodes_return_is_the_sum_over_agents_and_a_policys_the_mean_of_its_own() -> None:
    each = roll()
    collected(each, 2 * 7)
    assert each._collector is not None
    records = each._collector.drain_episodes()
    assert len(records) == 2
    for record in records:
        assert record.length == 6
        assert record.return_ == 6 * 1 + 2 * 2 + 3 * 3 + 4 * 4
        assert record.by_policy == {"a": 6.0, "b": (4 + 9) / 2, "c": 16.0}
        assert record.info == {agent: {"last": agent} for agent in ("stays", "comes", "twice")}


def test_a_sample_has_exactly_fragment_times_environments_env_steps() -> None:
    each = roll()
    for _ in range(5):
        batch = each.sample()
        assert batch.count == 18
        assert batch.policies["a"].count == 18, "it is there in each of them"


def test_advantages_of_one_agent_know_nothing_of_anothers_rewards() -> None:
    config = DDPPOConfig(
        rollout_fragment_length=6, num_envs_per_worker=1, gamma=1.0, multiagent=MultiAgentConfig(policy_mapping={})
    )
    batch = worker("probes.agents:Roll", config, lives=LIVES).sample()
    rows = batch.policies["default_policy"]
    own, life, t, _ = rows[c.OBS].T
    lengths = np.array([LIVES[list(LIVES)[int(a)]][int(i)][1] for a, i in zip(own, life, strict=True)])
    # Without discount and to the end of the agent's life: all that it is still paid.
    np.testing.assert_allclose(rows[c.VALUE_TARGETS], (own + 1) * (lengths - t), rtol=1e-5)


def test_n_steps_end_with_the_agents_life() -> None:
    from rltrain.api.config import DQNConfig

    config = DQNConfig(rollout_fragment_length=6, num_envs_per_worker=1, n_step=4, gamma=1.0)
    rows = worker("probes.agents:Roll", config, plan="DQN", lives=LIVES).sample().policies["default_policy"]
    own, life, t, _ = rows[c.OBS].T
    lengths = np.array([LIVES[list(LIVES)[int(a)]][int(i)][1] for a, i in zip(own, life, strict=True)])
    steps = np.minimum(lengths - t, 4)
    np.testing.assert_array_equal(rows[c.REWARDS], (own + 1) * steps)
    np.testing.assert_array_equal(rows[c.NEXT_OBS][:, :2], rows[c.OBS][:, :2])
    np.testing.assert_array_equal(rows[c.DISCOUNTS] == 0, t + steps == lengths)


def test_a_recurrent_policy_forgets_where_an_agents_life_begins() -> None:
    model = RecurrentModelConfig(fcnet_hiddens=(4,), lstm_cell_size=4, max_seq_len=3)
    config = R2D2Config(
        policy="R2D2", model=model, zero_init_states=False, rollout_fragment_length=12, num_envs_per_worker=1
    )
    rows = worker("probes.agents:Roll", config, plan="OffPolicy", lives=LIVES).sample().policies["default_policy"]
    begins = rows[c.T] == 0
    assert (rows[c.STATE][begins] == 0).all()
    assert (rows[c.STATE][~begins] != 0).any(axis=1).all()


def test_no_sequence_has_steps_of_two_agents_or_of_two_lives() -> None:
    model = RecurrentModelConfig(fcnet_hiddens=(4,), lstm_cell_size=4, max_seq_len=3)
    config = R2D2Config(
        policy="R2D2", model=model, burn_in=2, rollout_fragment_length=5, num_envs_per_worker=2, learning_starts=0
    )
    each = worker("probes.agents:Roll", config, plan="OffPolicy", lives=LIVES)
    buffer = make_buffer(config, 0, each.roster)
    for _ in range(12):
        buffer.add(each.sample())
    stored = buffer.get_state()["policies"]["default_policy"]["columns"]
    learnt = dict.fromkeys(LIVES, 0)
    for obs, start, count in zip(stored[c.OBS], stored[c.START], stored[c.SEQ_LENS], strict=True):
        rows = obs[start : config.burn_in + count + 1]
        assert len({(own, life) for own, life, _, _ in rows.tolist()}) == 1
        np.testing.assert_array_equal(np.diff(rows[:, 2]), 1)
        learnt[list(LIVES)[int(rows[0, 0])]] += int(count)
    # 60 steps of two environments are 20 episodes; what is open isn't cut yet.
    assert learnt == {name: 20 * sum(count for _, count in lives) for name, lives in LIVES.items()}


@pytest.mark.parametrize("plan", ["DDPPO", "R2D2"])
def test_a_serial_worker_restored_from_its_state_goes_on_bit_by_bit(plan: str) -> None:
    model = RecurrentModelConfig(fcnet_hiddens=(4,), lstm_cell_size=4, max_seq_len=3)
    config = R2D2Config(policy="R2D2", model=model, zero_init_states=False, rollout_fragment_length=5)

    def make() -> RolloutWorker:
        return roll() if plan == "DDPPO" else worker("probes.agents:Roll", config, plan="OffPolicy", lives=LIVES)

    def advance(each: RolloutWorker) -> str:
        batch = each.sample()
        rows = {policy: dict(rows.columns) for policy, rows in batch.policies.items()}
        episodes = [[record.return_, record.length, record.by_policy] for record in each.drain_episodes()]
        return content_hash([rows, episodes, each.get_state()])

    straight = make()
    for _ in range(4):
        advance(straight)
    state = straight.get_state()
    resumed = make()
    resumed.set_state(state)
    assert content_hash(resumed.get_state()) == content_hash(state)
    assert [advance(straight) for _ in range(4)] == [advance(resumed) for _ in range(4)]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("raise", "RuntimeError: this probe raises"),
        ("reward", "agent 'agent_0' got a reward that isn't finite"),
        ("no reward", "agent 'agent_0' acted and got no reward"),
        ("no observation", "agent 'agent_0' acted, hasn't terminated and got no observation"),
        ("observation", r"agent 'agent_0' got the observation 7, which isn't in Discrete\(3\)"),
        ("leaves", "agent 'agent_0' is no more in agents, and neither terminated nor truncated"),
        ("stays", "agent 'agent_0' has ended, and is still in agents"),
        ("stranger", "agent 'stranger' isn't one of possible_agents"),
    ],
)
def test_what_an_environment_must_not_do_is_refused_with_its_place(kind: str, words: str) -> None:
    each = worker("probes.agents:Odd", kind=kind)
    place = rf"'probes.agents:Odd' failed in worker 2, environment 0, step 2 of its episode 0 \(seed \d+\): .*{words}"
    with pytest.raises(EnvironmentFailed, match=place):
        each.sample()


def test_of_a_failed_episode_no_step_reaches_a_batch_after_the_failure() -> None:
    config = DDPPOConfig(rollout_fragment_length=6, num_envs_per_worker=1)
    Breaks.made = 0
    each = worker("probes.agents:Breaks", config, lives={"stays": [(0, 6)]}, max_restarts=9)
    seen: set[int] = set()
    for size in (6, 6, 2, 6):  # the second and the fourth episode fail in their fourth step
        rows = collected(each, size).policies["default_policy"]
        assert rows[c.T].tolist() == list(range(size))
        assert len(set(rows[c.EPS_ID])) == 1
        assert not seen & set(rows[c.EPS_ID])
        seen |= set(rows[c.EPS_ID])
    assert each.drain_faults().episodes_dropped == 2


def test_of_an_environment_that_fails_its_open_episode_is_taken_back_and_counted_and_batches_stay_exact() -> None:
    lives = {"stays": [(0, 6)], "goes": [(0, 2)]}
    each = worker(
        "probes.agents:Breaks",
        multiagent=MultiAgentConfig(policy_mapping={"stays": "a", "goes": "b"}),
        lives=lives,
        max_restarts=9,
    )
    whole: dict[int, int] = {}
    for size in (9, 4, 1, 20, 14):
        batch = collected(each, size)
        assert batch.count == size
        steps = batch.policies["a"][c.ENV_STEP]
        np.testing.assert_array_equal(np.sort(steps), np.arange(size))
        for eps_id in batch.policies["a"][c.EPS_ID].tolist():
            whole[eps_id] = whole.get(eps_id, 0) + 1
        both = {int(a): b for a, b in zip(steps, batch.policies["a"][c.OBS][:, 3], strict=True)}
        for step, t in zip(batch.policies["b"][c.ENV_STEP], batch.policies["b"][c.OBS][:, 3], strict=True):
            assert both[int(step)] == t, "rows of one env step have its number"
    report, finished = each.drain_faults(), each.drain_episodes()
    assert {fault.kind for fault in report.restarts} == {"RuntimeError"}
    assert len(report.restarts) == report.episodes_dropped == 2, "each environment, once"
    assert {record.length for record in finished} == {6}
    # Of a dropped episode nothing is left but what an earlier batch had: 9 steps of two environments are 5 and 4.
    assert sum(count < 6 for count in whole.values()) <= 2 + 2


def test_failures_beyond_the_limit_end_the_worker() -> None:
    each = worker("probes.agents:Odd", kind="raise", max_restarts=3)
    with pytest.raises(EnvironmentFailed, match=r"this probe raises; .* have failed 4 times .*maxRestarts allows 3"):
        collected(each, 100)


@pytest.mark.parametrize(
    ("env_id", "words"),
    [("probes.agents:Turns", "act by turns.*parallel_env"), ("probes.agents:Nameless", "has no possible_agents")],
)
def test_environments_of_another_kind_are_refused_with_what_to_do(env_id: str, words: str) -> None:
    with pytest.raises(UnknownEnvironment, match=words):
        spaces_of(EnvSpec(id=env_id))


def test_a_vector_of_their_own_is_refused_by_name() -> None:
    with pytest.raises(InvalidManifest, match=r"spec.env.vectorize: isn't Native of environments with several agents"):
        spaces_of(EnvSpec(id="probes.agents:Tell", vectorize="Native"))


def test_functions_and_modules_of_pettingzoo_make_environments_too() -> None:
    obs, actions = spaces_of(EnvSpec(id="probes.agents:tells", kwargs={"agents": 3, "sizes": [2, 3, 4]}))
    assert list(obs.spaces) == list(actions.spaces) == ["agent_0", "agent_1", "agent_2"]  # type: ignore[attr-defined]


def test_evaluation_plays_whole_episodes_the_same_for_any_number_of_environments() -> None:
    env = EnvSpec(id="probes.agents:Tell", kwargs={"agents": 2, "sizes": [3, 2], "leaves": 7})
    block = MultiAgentConfig(policy_mapping={"agent_0": "a", "agent_1": "b"})
    tell = RolloutWorker(WorkerSpec("DDPPO", env, DDPPOConfig(multiagent=block), seed=4))
    one = evaluate(tell.policy, env, 7, seed=5, num_envs=1)
    several = evaluate(tell.policy, env, 7, seed=5, num_envs=3)
    assert one == several
    assert {record.length for record in one} == {20}
    assert len({record.return_ for record in one}) > 1
    assert all(record.return_ == pytest.approx(sum(record.by_policy.values())) for record in one)
