"""Making environments from a manifest's `env` block."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import gymnasium
from gymnasium import error as gym_error
from gymnasium.envs.registration import VectorizeMode
from gymnasium.vector import AutoresetMode

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, RltrainError, UnknownEnvironment
from rltrain.api.nearest import did_you_mean
from rltrain.models.packing import PackedBox, pack_space
from rltrain.rollout import atari, pools
from rltrain.state import Array
from rltrain.user_code import import_module

Env: TypeAlias = gymnasium.Env[Any, Any]
Space: TypeAlias = gymnasium.Space[Any]
VectorEnv: TypeAlias = gymnasium.vector.VectorEnv[Any, Any, Any]

WHERE: Final = "is it installed, in the working folder, beside the manifest, or in spec.code?"
WORKER_INDEX_VARIABLE = "RLTRAIN_WORKER_INDEX"
"""Set while an environment is made, so that its constructor can tell workers apart (ports, levels)."""


class PackedObservations(gymnasium.ObservationWrapper[Array, Any, Any]):
    """An environment whose observations of several parts come as one row."""

    def __init__(self, env: Env, space: PackedBox) -> None:
        super().__init__(env)
        self._packed = self.observation_space = space

    def observation(self, observation: Any) -> Array:
        return self._packed.pack(observation)


def make_env(spec: EnvSpec, worker: int = 0) -> Env:
    """Make one environment: a gymnasium id, `"package.module:Class"`, or a task of envpool.

    Raises:
        UnknownEnvironment: no such id, module or class (the message has the nearest registered ids), it needs a
            package that isn't installed, or is no gymnasium.Env.
        MissingExtra: it needs an optional part of this distribution.
        EnvironmentFailed: its constructor raised.
    """
    env = construct(spec, worker)
    if not isinstance(env, gymnasium.Env):
        raise UnknownEnvironment(f"{spec.id!r} is not a gymnasium.Env but {type(env).__name__}")
    with usable_spaces(spec):
        _ = env.action_space
        packed = pack_space(env.observation_space)
    return env if packed is None else PackedObservations(env, packed)


@contextmanager
def usable_spaces(spec: EnvSpec) -> Iterator[None]:
    """Where an environment's spaces are read. Raises UnsupportedSpace, EnvironmentFailed."""
    try:
        yield
    except RltrainError:
        raise
    except Exception as error:
        raise EnvironmentFailed(
            f"environment {spec.id!r} has no spaces that can be used: {type(error).__name__}: {error}"
        ) from error


def construct(spec: EnvSpec, worker: int) -> Any:
    """What an id or a class makes, of whatever type. Raises as `make_env` does."""
    factory = factory_of(spec)
    os.environ[WORKER_INDEX_VARIABLE] = str(worker)
    try:
        if factory is not None:
            return factory(**spec.kwargs)
        if spec.atari is not None:
            game = gymnasium.make(spec.id, disable_env_checker=True, frameskip=1, **spec.kwargs)
            return atari.prepare(game, spec.atari)
        return gymnasium.make(spec.id, disable_env_checker=True, **spec.kwargs)
    except RltrainError:
        raise
    except (Exception, SystemExit) as error:
        if factory is None and isinstance(error, gym_error.Error) and spec.id not in gymnasium.registry:
            raise _unknown(spec.id) from error
        if isinstance(error, gym_error.DependencyNotInstalled):
            raise UnknownEnvironment(f"environment {spec.id!r} needs what isn't installed: {error}") from error
        raise EnvironmentFailed(
            f"environment {spec.id!r} can't be made in worker {worker} with kwargs {spec.kwargs}: "
            f"{type(error).__name__}: {error}"
        ) from error


def native_from(spec: EnvSpec) -> int:
    """Number of environments from which a native vector is faster than a list of them."""
    threads = spec.atari is not None or spec.id.startswith(pools.PREFIX)
    return 1 if threads else 8  # CartPole: 50 us a step against 9 us each


def make_native_vector(spec: EnvSpec, num_envs: int, worker: int = 0) -> VectorEnv:
    """Make the vector environment that an id brings along.

    Only the next-step autoreset mode fits: its steps at an episode's end carry the final observation.

    Raises:
        UnknownEnvironment: there is none, or it doesn't fit; see also `make_env`.
        EnvironmentFailed: it can't be made.
    """
    single = make_env(spec, worker)
    single.close()
    pooled = spec.id.startswith(pools.PREFIX)
    registered = gymnasium.registry.get(spec.id)
    if not pooled and (registered is None or registered.vector_entry_point is None or registered.additional_wrappers):
        raise UnknownEnvironment(f"environment {spec.id!r} brings no vector environment along: leave env.vectorize out")
    os.environ[WORKER_INDEX_VARIABLE] = str(worker)
    try:
        envs: VectorEnv
        if pooled:
            envs = pools.PoolVector(spec.id.removeprefix(pools.PREFIX), num_envs, **spec.kwargs)
        elif spec.atari is not None:
            envs = atari.make_vector(spec, num_envs)
        else:
            mode = VectorizeMode.VECTOR_ENTRY_POINT
            envs = gymnasium.make_vec(spec.id, num_envs=num_envs, vectorization_mode=mode, **spec.kwargs)
    except (Exception, SystemExit) as error:
        raise EnvironmentFailed(
            f"environment {spec.id!r} can't be made as a vector in worker {worker} with kwargs {spec.kwargs}: "
            f"{type(error).__name__}: {error}"
        ) from error
    spaces = (single.observation_space, single.action_space)
    if spaces != (envs.single_observation_space, envs.single_action_space):
        why = f"other spaces, {envs.single_observation_space} and {envs.single_action_space}"
    elif envs.metadata.get("autoreset_mode") not in (AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP.value):
        why = "another autoreset mode than next-step"
    else:
        return envs
    envs.close()
    raise UnknownEnvironment(f"the vector environment that {spec.id!r} brings along doesn't fit: it has {why}")


def _import_modules(spec: EnvSpec) -> None:
    for module in spec.imports:
        try:
            import_module(module)
        except ImportError as error:
            raise UnknownEnvironment(f"env.imports: can't import {module!r}: {error}; {WHERE}") from error
    if spec.atari is not None or spec.id.startswith(atari.NAMESPACE):
        atari.register_games()
    if spec.atari is not None:
        atari.check_game(spec.id)


def factory_of(spec: EnvSpec) -> Any:
    """The class of `"package.module:Class"`; None for a gymnasium id (which may itself be `"module:Id-v0"`).

    Raises:
        UnknownEnvironment: there is no such module or class.
    """
    _import_modules(spec)
    module_name, colon, attribute = spec.id.partition(":")
    if not colon:
        return None
    if spec.id.startswith(pools.PREFIX):
        return partial(pools.PoolEnv, attribute)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise UnknownEnvironment(f"environment {spec.id!r}: can't import {module_name!r}: {error}; {WHERE}") from error
    found = getattr(module, attribute, None)
    if found is None and attribute not in gymnasium.registry:
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise UnknownEnvironment(
            f"environment {spec.id!r}: {module_name!r} has no {attribute!r}{did_you_mean(attribute, classes, most=3)}"
        )
    return found


def _unknown(env_id: str) -> UnknownEnvironment:
    near = did_you_mean(env_id, gymnasium.registry, most=3)
    return UnknownEnvironment(
        f"no environment {env_id!r} is registered{near}. An environment of your own needs env.imports, "
        'or an id like "package.module:Class"'
    )
