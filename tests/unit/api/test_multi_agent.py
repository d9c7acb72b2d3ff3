"""The `multiagent` block: what is refused before an environment is looked at."""

from collections.abc import Callable

import pytest

from rltrain.api.errors import Problem
from rltrain.api.load import load_text
from unit.api.conftest import manifest


def config(*lines: str) -> str:
    return "\n".join(["config:", *(f"  {line}" for line in lines)])


@pytest.mark.parametrize("plan", ["DQN", "DDPPO", "Apex", "ApexClassic", "CQL"])
def test_every_plan_has_it_and_resolves_it_as_it_is(plan: str) -> None:
    block = 'multiagent: {policy_mapping: {"walker_*": walkers, wall: wall}, policies_to_train: [wall]}'
    own = ["input: x.npz"] if plan == "CQL" else []
    job = load_text(manifest(config(*own, block), plan)).job
    options = job.spec.config.multiagent
    assert options is not None
    assert options.policy_mapping == {"walker_*": "walkers", "wall": "wall"}
    assert options.policies_to_train == ("wall",)
    assert load_text(manifest(config(*own) if own else "", plan)).job.spec.config.multiagent is None


@pytest.mark.parametrize(
    ("block", "path", "words"),
    [
        (
            "{policy_mapping: {a: walker}, policies_to_train: [wolker]}",
            "spec.config.multiagent.policies_to_train",
            "policies_to_train has 'wolker', which policy_mapping gives to no agent (did you mean walker?)",
        ),
        (
            "{policies_to_train: [mine]}",
            "spec.config.multiagent.policies_to_train",
            "there are default_policy",
        ),
        ("{policies_to_train: []}", "spec.config.multiagent.policies_to_train", "at least 1"),
        ("{replay_mode: lockstp}", "spec.config.multiagent.replay_mode", "did you mean lockstep?"),
        ("{policy_maping: {a: b}}", "spec.config.multiagent.policy_maping", "did you mean policy_mapping?"),
        ("{policy_mapping: {a: 1}}", "spec.config.multiagent.policy_mapping.a", "must be text"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_the_right_name(
    problems: Callable[..., list[Problem]], block: str, path: str, words: str
) -> None:
    (found,) = problems(manifest(config(f"multiagent: {block}")))
    assert found.path == path
    assert words in str(found)


def test_lockstep_has_no_priorities_and_says_what_to_do(problems: Callable[..., list[Problem]]) -> None:
    (found,) = problems(manifest(config("multiagent: {replay_mode: lockstep}")))
    assert "set prioritized_replay to false, or replay_mode to independent" in str(found)
    load_text(manifest(config("multiagent: {replay_mode: lockstep}", "prioritized_replay: false")))


def test_lockstep_is_for_steps_not_for_sequences(problems: Callable[..., list[Problem]]) -> None:
    (found,) = problems(manifest(config("policy: R2D2", "multiagent: {replay_mode: lockstep}"), "OffPolicy"))
    assert "lockstep isn't for policy R2D2" in str(found)


def test_ranks_have_no_replay_mode(problems: Callable[..., list[Problem]]) -> None:
    (found,) = problems(manifest(config("multiagent: {replay_mode: independent}"), "DDPPO"))
    assert found.path == "spec.config.multiagent.replay_mode"
