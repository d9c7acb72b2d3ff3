"""The process of an environment that is stepped apart."""

import ctypes
import os
import pickle
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.api.errors import RltrainError
from rltrain.rollout.agents_env import AgentsEnv, AgentsStep
from rltrain.rollout.environments import Space
from rltrain.rollout.faults import Fault
from rltrain.rollout.vector import EnvList, Step
from rltrain.state import Array

_PR_SET_PDEATHSIG: Final = 1
_SENT: Final = (bool, int, float, str, np.generic, np.ndarray)


@dataclass(frozen=True)
class Setup:
    """What the process is sent first: see `EnvList`."""

    spec: EnvSpec
    seed: int
    worker: int
    record: bool
    index: int
    begun: int
    several_agents: bool = False
    """Serve an `AgentsEnv` instead."""


@dataclass(frozen=True)
class Made:
    """Its first answer, unless the environment can't be made."""

    observation_space: Space
    action_space: Space


class Row(NamedTuple):
    """What a step gave, in what is quickly sent: the observation after it is the array's bytes.

    Attributes:
        info: of an episode's last step, without what isn't a number, text or an array.
    """

    next_obs: bytes
    reward: float
    terminated: bool
    truncated: bool
    valid: bool
    info: Mapping[str, Any]


class Answer(NamedTuple):
    """Its answer to each call, given as the name of a method of `EnvList` and arguments.

    Attributes:
        row: of a step.
        obs: bytes of what to act on next, where that isn't the observation after the step.
    """

    row: Row | None
    obs: bytes | None
    faults: list[Fault]


class AgentsAnswer(NamedTuple):
    """The same of an `AgentsEnv`.

    Attributes:
        result: what the method has returned.
        obs: what each agent is to act on next.
    """

    result: Any
    obs: Mapping[str, Array]


def send(connection: Connection, value: object) -> None:
    """As `Connection.send`, in half the time."""
    connection.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def receive(connection: Connection) -> Any:
    """What the other end has sent."""
    return pickle.loads(connection.recv_bytes())


def main() -> None:
    """Serve an `EnvList` of one environment, or an `AgentsEnv`, until the parent closes its end, or dies.

    Arguments of the process: the connection's file descriptor, and the parent's id.
    """
    descriptor, parent = map(int, sys.argv[1:])
    # However busy the environment is then: in native code it wouldn't see that the connection is closed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    with Connection(descriptor) as connection:
        setup: Setup = receive(connection)
        try:
            served = _made(setup)
        except RltrainError as error:
            send(connection, error)
            return
        send(connection, Made(served.observation_space, served.action_space))
        while True:
            try:
                name, args = receive(connection)
            except EOFError:
                break
            try:
                result = getattr(served, name)(*args)
                answer: object = (
                    _answer(served, result) if isinstance(served, EnvList) else _agents_answer(served, result)
                )
            except RltrainError as error:
                answer = error
            send(connection, answer)
        served.close()


def _made(setup: Setup) -> EnvList | AgentsEnv:
    spec, seed, worker, record, begun = setup.spec, setup.seed, setup.worker, setup.record, setup.begun
    if setup.several_agents:
        return AgentsEnv(spec, seed, worker, setup.index, record, begun=begun)
    return EnvList(spec, 1, seed, worker, record, first=setup.index, begun=begun)


def _agents_answer(env: AgentsEnv, result: object) -> AgentsAnswer:
    if isinstance(result, AgentsStep):
        infos = {agent: _sent(info) for agent, info in result.infos.items()} if result.over else {}
        result = result._replace(infos=infos)
    return AgentsAnswer(result, env.obs)


def _sent(info: Any) -> Mapping[str, Any]:
    return {key: value for key, value in info.items() if _can_be_sent(value)} if isinstance(info, dict) else {}


def _can_be_sent(value: Any) -> bool:
    return isinstance(value, _SENT) and not (isinstance(value, np.ndarray) and value.dtype.hasobject)


def _answer(envs: EnvList, step: Step | None) -> Answer:
    if step is None:
        return Answer(None, envs.obs.tobytes(), envs.faults)
    terminated, truncated = bool(step.terminateds[0]), bool(step.truncateds[0])
    info = _sent(step.infos.get(0, {}))
    row = Row(step.next_obs.tobytes(), float(step.rewards[0]), terminated, truncated, step.valid is None, info)
    return Answer(row, envs.obs.tobytes() if terminated or truncated else None, envs.faults)
