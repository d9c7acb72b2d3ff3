"""Which policy an agent has, and what can't be meant."""

import pytest
from gymnasium import spaces

from rltrain.api.config import DQNConfig, PlanConfig
from rltrain.api.config.multi_agent import ReplayMultiAgentConfig
from rltrain.api.errors import InvalidManifest
from rltrain.models.agents import AgentSpaces, Roster, assign, make_roster

AGENTS = ["walker_0", "walker_1", "walker_2", "wall"]


@pytest.mark.parametrize(
    ("mapping", "policies"),
    [
        ({"*": "p"}, ["p", "p", "p", "p"]),
        ({"*": "p", "walker_*": "q"}, ["q", "q", "q", "p"]),
        ({"walker_*": "q", "*": "p", "walker_1": "r"}, ["q", "r", "q", "p"]),
        ({"*_0": "x", "walker_*": "q", "wall": "w"}, ["q", "q", "q", "w"]),
        ({"w*l": "w", "w*r*": "q"}, ["q", "q", "q", "w"]),
        ({"wal*": "p", "*_1": "p"}, ["p", "p", "p", "p"]),
    ],
)
def test_an_agent_counts_before_patterns_and_longer_ones_before_shorter_in_any_order(
    mapping: dict[str, str], policies: list[str]
) -> None:
    assert list(assign(mapping, AGENTS).values()) == policies
    assert assign(dict(reversed(mapping.items())), AGENTS) == assign(mapping, AGENTS)


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("a*", True),
        ("*a", True),
        ("ab*ba", True),
        ("ab*a", True),
        ("abb*ba", False),
        ("abba*ba", False),
        ("*bb*", True),
        ("*b*b*", True),
        ("*b*b*b*", False),
        ("a*c*a", False),
        ("**b**a**", True),
        ("*a" * 60 + "*b", False),
    ],
)
def test_a_star_is_any_number_of_characters(pattern: str, fits: bool) -> None:
    agent = "abba" if len(pattern) < 60 else "a" * 100
    mapping = {pattern: "p", agent: "q"} if not fits else {pattern: "p"}
    if fits:
        assert assign(mapping, [agent]) == {agent: "p"}
    else:
        with pytest.raises(InvalidManifest, match="has no agent"):
            assign(mapping, [agent])


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"walker_*": "q"}, "has no policy for agent 'wall' (add a line such as wall: wall)"),
        ({"*": "p", "walkr_0": "q"}, "the environment has no agent 'walkr_0' (did you mean walker_0?)"),
        ({"*": "p", "x*": "q"}, "the environment has no agent 'x*'; there are walker_0, walker_1, walker_2, wall"),
        (
            {"*": "p", "*er_0": "q", "walk*": "r"},
            "gives agent 'walker_0' both q and r (add a line such as walker_0: q",
        ),
    ],
)
def test_agents_left_out_or_unknown_and_two_policies_for_one_are_refused(mapping: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        assign(mapping, AGENTS)
    assert words in str(refused.value)
    assert "spec.config.multiagent.policy_mapping" in str(refused.value)


def roster(config: PlanConfig, **others: spaces.Space[object]) -> Roster:
    obs = {name: spaces.Discrete(3) for name in ("one", "two")} | others
    return make_roster(config, AgentSpaces(obs), AgentSpaces({name: spaces.Discrete(2) for name in obs}))


def block(**options: object) -> DQNConfig:
    return DQNConfig(multiagent=ReplayMultiAgentConfig.model_validate(options))


def test_all_agents_share_one_policy_and_all_policies_learn_unless_said_otherwise() -> None:
    assert roster(DQNConfig()).agents == {"default_policy": ("one", "two")}
    assert roster(DQNConfig()).to_train == ("default_policy",)
    own = {"one": "b", "two": "a"}
    assert roster(block(policy_mapping=own)).agents == {"a": ("two",), "b": ("one",)}
    assert roster(block(policy_mapping=own)).to_train == ("a", "b")
    assert roster(block(policy_mapping=own, policies_to_train=["b"])).to_train == ("b",)


def test_agents_of_different_spaces_cannot_share_a_policy() -> None:
    with pytest.raises(InvalidManifest, match=r"'default_policy'.*'odd' and 'one', whose observation spaces differ"):
        roster(DQNConfig(), odd=spaces.Discrete(4))
    assert set(roster(block(policy_mapping={"*": "p", "odd": "q"}), odd=spaces.Discrete(4)).agents) == {"p", "q"}
