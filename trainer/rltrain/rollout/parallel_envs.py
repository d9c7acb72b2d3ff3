"""Environments with several agents: PettingZoo's parallel ones, told from others and made."""

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium

from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidManifest, Problem, UnknownEnvironment, UnsupportedSpace
from rltrain.models.agents import AgentSpaces
from rltrain.models.packing import pack_space
from rltrain.rollout.environments import Space, construct, factory_of, make_env, usable_spaces

if TYPE_CHECKING:
    from pettingzoo.utils.env import ParallelEnv  # type: ignore[import-untyped]

    Parallel: TypeAlias = ParallelEnv[Any, Any, Any]


def is_multi_agent(spec: EnvSpec) -> bool:
    """Whether an id makes an environment with several agents. A function must be called to know; a class needn't.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env`.
    """
    factory = factory_of(spec)
    if factory is None:
        return False
    kind: Any = factory.func if isinstance(factory, partial) else factory
    if not isinstance(kind, type):
        made = construct(spec, worker=0)
        kind = type(made)
        if hasattr(made, "close"):
            made.close()
    if issubclass(kind, gymnasium.Env):
        return False
    from pettingzoo.utils.env import AECEnv, ParallelEnv  # half a second, which only those that need it take

    return issubclass(kind, AECEnv | ParallelEnv)


def make_parallel_env(spec: EnvSpec, worker: int = 0) -> "Parallel":
    """Make one.

    Raises:
        InvalidManifest: it is to be stepped as a vector of its own.
        UnknownEnvironment: see `make_env`; or its agents act by turns, or aren't known beforehand.
        EnvironmentFailed: its constructor raised.
    """
    from pettingzoo.utils.env import AECEnv

    if spec.vectorize == "Native":
        message = "isn't Native of environments with several agents: they bring no vector along"
        raise InvalidManifest([Problem("spec.env.vectorize", message, "leave it out")])
    env = construct(spec, worker)
    if isinstance(env, AECEnv):
        raise UnknownEnvironment(
            f"the agents of {spec.id!r} act by turns: use its module's parallel_env, or a function of your own that "
            "returns pettingzoo.utils.conversions.aec_to_parallel(env)"
        )
    if not getattr(env, "possible_agents", None):
        raise UnknownEnvironment(f"{spec.id!r} has no possible_agents, by which policies are made: give it some")
    parallel: Parallel = env
    return parallel


def agent_spaces(env: "Parallel") -> tuple[AgentSpaces, AgentSpaces]:
    """Observation and action spaces by agent; observations of several parts are packed. Raises UnsupportedSpace."""
    agents = {str(agent): agent for agent in env.possible_agents}
    if len(agents) < len(env.possible_agents):
        raise UnsupportedSpace(f"agents must differ in their names, {env.possible_agents} don't")
    obs = {name: env.observation_space(agent) for name, agent in agents.items()}
    packed = {name: pack_space(space) or space for name, space in obs.items()}
    return AgentSpaces(packed), AgentSpaces({name: env.action_space(agent) for name, agent in agents.items()})


def spaces_of(spec: EnvSpec, worker: int = 0) -> tuple[Space, Space]:
    """Observation and action space of any environment, which is made once; see `agent_spaces` for several agents.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env` and `make_parallel_env`.
    """
    if is_multi_agent(spec):
        parallel = make_parallel_env(spec, worker)
        try:
            with usable_spaces(spec):
                return agent_spaces(parallel)
        finally:
            parallel.close()
    env = make_env(spec, worker)
    env.close()
    return env.observation_space, env.action_space
