"""Making environments: ids, classes, imports, and what is said when there is none."""

import sys
from pathlib import Path

import gymnasium
import pytest

from probes.envs import Const, Count
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, UnknownEnvironment
from rltrain.rollout.environments import make_env, make_native_vector


def test_an_id_and_a_class_are_made_with_their_kwargs() -> None:
    cartpole = make_env(EnvSpec(id="CartPole-v1", kwargs={"sutton_barto_reward": True}))
    assert cartpole.spec is not None
    assert cartpole.spec.max_episode_steps == 500
    count = make_env(EnvSpec(id="probes.envs:Count", kwargs={"length": 3}))
    assert isinstance(count, Count)


def test_imports_register_ids_of_a_user_s_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registers_an_id.py").write_text(
        "import gymnasium\ngymnasium.register('Mine-v0', entry_point='probes.envs:Const')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        env = make_env(EnvSpec(id="Mine-v0", imports=["registers_an_id"]))
        assert isinstance(env.unwrapped, Const)
    finally:
        gymnasium.registry.pop("Mine-v0", None)
        sys.modules.pop("registers_an_id", None)


@pytest.mark.parametrize("env_id", ["CartPol-v1", "cartpole-v1", "CartPole_v1"])
def test_an_unknown_id_names_the_nearest_registered_ones(env_id: str) -> None:
    with pytest.raises(UnknownEnvironment, match=rf"no environment '{env_id}' .*did you mean .*CartPole-v1"):
        make_env(EnvSpec(id=env_id))


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("Cart Pole", "no environment 'Cart Pole'"),
        ("CartPole-v99", "no environment 'CartPole-v99'"),
        ("nowhere/CartPole-v1", "no environment"),
        ("no_such_module:Env", "can't import 'no_such_module'"),
        ("probes.envs:Cnost", "has no 'Cnost' \\(did you mean Const"),
        ("json:loads", "can't be made|not a gymnasium.Env"),
        ("builtins:dict", "not a gymnasium.Env but dict"),
    ],
)
def test_what_cannot_be_an_environment_is_refused_in_a_sentence(env_id: str, words: str) -> None:
    with pytest.raises((UnknownEnvironment, EnvironmentFailed), match=words):
        make_env(EnvSpec(id=env_id))


def test_a_module_of_imports_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownEnvironment, match=r"env\.imports: can't import 'no_such_module'"):
        make_env(EnvSpec(id="CartPole-v1", imports=["no_such_module"]))


def test_a_constructor_that_raises_is_reported_with_its_kwargs_and_worker() -> None:
    with pytest.raises(EnvironmentFailed, match=r"'CartPole-v1' can't be made in worker 4 with kwargs .*'wings': 2"):
        make_env(EnvSpec(id="CartPole-v1", kwargs={"wings": 2}), worker=4)


def test_only_an_id_that_brings_a_vector_environment_is_stepped_as_one() -> None:
    assert make_native_vector(EnvSpec(id="CartPole-v1"), 3).num_envs == 3
    for env_id in ("Pendulum-v1", "probes.envs:Const"):
        with pytest.raises(UnknownEnvironment, match=f"'{env_id}' brings no vector environment along"):
            make_native_vector(EnvSpec(id=env_id), 3)


def test_a_vector_environment_of_other_spaces_than_the_single_one_s_does_not_fit() -> None:
    with pytest.raises(UnknownEnvironment, match=r"'ALE/Pong-v5' .* doesn't fit: it has other spaces"):
        make_native_vector(EnvSpec(id="ALE/Pong-v5", imports=["ale_py"]), 2)


class Spaceless(gymnasium.Env[int, int]):
    """An environment whose author forgot the spaces."""


def test_an_environment_without_spaces_is_named() -> None:
    spec = EnvSpec(id="trainer.rollout.test_environments:Spaceless")
    words = r"'trainer.rollout.test_environments:Spaceless' has no spaces that can be used: AttributeError"
    with pytest.raises(EnvironmentFailed, match=words):
        make_env(spec)
