"""A group of policies: who learns, what comes back by whose name, and what it has in common with a policy."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rltrain.api.config import (
    ApexConfig,
    DDPPOConfig,
    DQNConfig,
    ModelConfig,
    MultiAgentConfig,
    PlanConfig,
    ReplayMultiAgentConfig,
    SACConfig,
)
from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidManifest, UnsupportedSpace
from rltrain.models.agents import AgentSpaces
from rltrain.policies.group import PolicyGroup
from rltrain.policies.registry import check_spaces, make_policy
from rltrain.policies.sharing import alone
from rltrain.replay.make import make_buffer
from rltrain.rollout import columns as c
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import content_hash

SMALL = ModelConfig(fcnet_hiddens=(8,))
TWO = {"policy_mapping": {"agent_0": "a", "agent_1": "b"}}
TELL = EnvSpec(id="probes.agents:Tell")


def worker(config: PlanConfig, plan: str, env: EnvSpec = TELL, **options: Any) -> RolloutWorker:
    return RolloutWorker(WorkerSpec(plan, env, config, seed=3, **options))


def dqn(**block: Any) -> DQNConfig:
    return DQNConfig(
        model=SMALL, hiddens=(), learning_starts=8, multiagent=ReplayMultiAgentConfig.model_validate({**TWO, **block})
    )


def group(each: RolloutWorker) -> PolicyGroup:
    assert isinstance(each.policy, PolicyGroup)
    return each.policy


@pytest.mark.parametrize(
    ("plan", "config", "env"),
    [
        ("DQN", dqn(policies_to_train=["b"]), TELL),
        (
            "OffPolicy",
            SACConfig(
                policy="SAC",
                model=SMALL,
                rollout_fragment_length=16,
                multiagent=ReplayMultiAgentConfig.model_validate({**TWO, "policies_to_train": ["b"]}),
            ),
            EnvSpec(id="probes.agents:Steer"),
        ),
        ("DDPPO", DDPPOConfig(model=SMALL, multiagent=MultiAgentConfig(**TWO, policies_to_train=("b",))), TELL),
    ],
    ids=["DQN", "SAC", "DDPPO"],
)
def test_a_policy_that_is_not_trained_stays_as_it_is_bit_by_bit(plan: str, config: Any, env: EnvSpec) -> None:
    each = worker(config, plan, env)
    before = {name: content_hash(policy.learned_state()) for name, policy in group(each).policies.items()}
    for step in range(5):
        batch = each.sample()
        assert list(batch.policies) == ["b"], "nobody learns from the others"
        if plan != "DDPPO":
            buffer = make_buffer(config.model_copy(update={"learning_starts": 0}), 0, each.roster)
            buffer.add(batch)
            batch = buffer.sample(4)
        info = each.policy.learn_on_batch(batch)
        assert {name.split("/")[0] for name in info.stats} == {"b"}
        each.policy.update_target()
        each.set_global_step(step)
    after = {name: content_hash(policy.learned_state()) for name, policy in group(each).policies.items()}
    assert after["a"] == before["a"]
    assert after["b"] != before["b"]


def test_first_weights_are_a_policys_own_and_the_same_in_every_worker() -> None:
    one, other = worker(dqn(), "DQN", index=1), worker(dqn(), "DQN", index=2)
    assert content_hash(one.policy.learned_state()) == content_hash(other.policy.learned_state())
    hashes = [content_hash(policy.get_weights()) for policy in group(one).policies.values()]
    assert len(set(hashes)) == 2
    alone = worker(dqn(policy_mapping={"agent_0": "a", "agent_1": "z"}), "DQN")
    assert content_hash(group(alone).policies["a"].get_weights()) == hashes[0], "whichever others there are"


def test_a_state_has_the_parts_of_a_policys_and_restores_all_of_them() -> None:
    first, second = worker(dqn(), "DQN", serial=True), worker(dqn(), "DQN", index=1, serial=True)
    buffer = make_buffer(dqn(), 0, first.roster)
    for _ in range(20):
        buffer.add(first.sample())
        drawn = buffer.sample(8)
        if drawn is not None:
            first.policy.learn_on_batch(drawn)
    state = first.policy.get_state()
    assert state.keys() == group(first).policies["a"].get_state().keys()
    assert first.policy.learned_state().keys() == group(first).policies["a"].learned_state().keys()
    assert state["weights"].keys() == {"a", "b"}
    second.policy.set_state(state)
    assert content_hash(second.policy.get_state()) == content_hash(state)
    second.set_weights(worker(dqn(), "DQN").get_weights())
    assert content_hash(second.get_weights()) != content_hash(first.get_weights())


def test_td_errors_come_back_by_policy_for_its_own_rows() -> None:
    each = worker(dqn(), "DQN")
    buffer = make_buffer(dqn(), 0, each.roster)
    for _ in range(10):
        buffer.add(each.sample())
    drawn = buffer.sample(6)
    assert drawn is not None
    errors = each.policy.learn_on_batch(drawn).td_error
    assert {name: error.shape for name, error in errors.items()} == {"a": (6,), "b": (6,)}
    judged = worker(ApexConfig(model=SMALL, hiddens=(), multiagent=ReplayMultiAgentConfig(**TWO)), "Apex")  # type: ignore[arg-type]
    batch = judged.sample()
    first = judged.policy.td_error(batch)
    assert {name: error.shape for name, error in first.items()} == {"a": (50,), "b": (50,)}


def test_policies_take_their_minibatches_one_after_the_other_as_many_as_were_agreed_on() -> None:
    config = DDPPOConfig(
        model=SMALL,
        rollout_fragment_length=20,
        num_envs_per_worker=1,
        sgd_minibatch_size=5,
        num_sgd_iter=2,
        multiagent=MultiAgentConfig.model_validate(TWO),
    )
    env = EnvSpec(id="probes.agents:Tell", kwargs={"sizes": [3, 5], "leaves": 7})
    each = worker(config, "DDPPO", env)
    batch = each.sample()
    assert each.policy.minibatches_of(batch) == {"a": 4, "b": 2}
    sizes = {name: sum(v.size for v in p.get_weights().values()) + 1 for name, p in group(each).policies.items()}

    def lengths(agreed: dict[str, int]) -> list[int]:
        sgd = each.policy.minibatch_sgd(batch, minibatches=agreed)
        found = []
        try:
            vector = next(sgd)
            while True:
                found.append(len(vector))
                vector = sgd.send(vector)
        except StopIteration:
            return found

    assert lengths({"a": 4, "b": 3}) == [sizes["a"]] * 8 + [sizes["b"]] * 6
    assert lengths({"a": 4, "b": 2}) == [sizes["a"]] * 8 + [sizes["b"]] * 4


def test_a_rank_without_rows_of_a_policy_keeps_step_and_none_at_all_is_passed_over() -> None:
    config = DDPPOConfig(
        model=SMALL, rollout_fragment_length=4, num_envs_per_worker=1, multiagent=MultiAgentConfig.model_validate(TWO)
    )
    lives = {"agent_0": [(0, 8)], "agent_1": [(4, 4)]}
    each = worker(config, "DDPPO", EnvSpec(id="probes.agents:Roll", kwargs={"lives": lives}))
    batch = each.sample()
    assert each.policy.minibatches_of(batch) == {"a": 1, "b": 0}
    for agreed, stats in (({"a": 1, "b": 0}, {"a"}), ({"a": 1, "b": 2}, {"a", "b"})):
        info = alone(each.policy.minibatch_sgd(batch, minibatches=agreed))
        assert {name.split("/")[0] for name in info.stats} == stats
        assert np.isfinite(list(info.stats.values())).all()


def test_a_block_of_several_agents_is_refused_for_one() -> None:
    config = dqn()
    with pytest.raises(InvalidManifest, match=r"spec.config.multiagent: the environment has one agent \(leave it out"):
        check_spaces("DQN", config, spaces.Discrete(2), spaces.Discrete(2))


def test_a_space_that_a_policy_cannot_take_is_refused_for_whichever_agent() -> None:
    obs = AgentSpaces({name: spaces.Discrete(2) for name in ("agent_0", "agent_1")})
    acts = AgentSpaces({"agent_0": spaces.Discrete(2), "agent_1": spaces.Box(-1, 1, (1,))})
    with pytest.raises(UnsupportedSpace, match="plan DQN can't take the action space Box"):
        make_policy("DQN", dqn(), obs, acts, seed=0)


def test_each_row_is_learnt_from_by_one_policy_alone() -> None:
    """Agents of one policy learn what they learn in one batch, and nothing reaches the other policy's network."""
    each = worker(dqn(), "DQN")
    buffer = make_buffer(dqn(), 0, each.roster)
    for _ in range(10):
        buffer.add(each.sample())
    drawn = buffer.sample(6)
    assert drawn is not None
    twin = worker(dqn(), "DQN")
    group(twin).policies["a"].learn_on_batch(drawn.policies["a"])
    each.policy.learn_on_batch(drawn)
    ours, theirs = group(each).policies, group(twin).policies
    assert content_hash(ours["a"].get_weights()) == content_hash(theirs["a"].get_weights())
    assert content_hash(ours["b"].get_weights()) != content_hash(theirs["b"].get_weights())
    assert c.WEIGHTS in drawn


def test_a_group_on_several_devices_learns_what_it_learns_on_one() -> None:
    each = worker(dqn(), "DQN")
    buffer = make_buffer(dqn(), 0, each.roster)
    for _ in range(10):
        buffer.add(each.sample())
    drawn = buffer.sample(6)
    assert drawn is not None
    spaces_ = each.observation_space, each.action_space
    one, two = (make_policy("DQN", dqn(), *spaces_, seed=3, devices=("cpu",) * count) for count in (1, 2))
    errors = [group_.learn_on_batch(drawn).td_error for group_ in (one, two)]
    for name in ("a", "b"):
        np.testing.assert_allclose(errors[1][name], errors[0][name], atol=1e-6)
        for key, weights in one.get_weights()[name].items():
            np.testing.assert_allclose(two.get_weights()[name][key], weights, atol=1e-5)
