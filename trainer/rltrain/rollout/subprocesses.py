"""Environments in processes of their own, stepped side by side; one that hangs or dies is replaced."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, RltrainError
from rltrain.rollout.env_process import AgentsAnswer, Answer, Made, Row, Setup, receive, send
from rltrain.rollout.environments import Space
from rltrain.rollout.faults import Fault
from rltrain.rollout.vector import EnvList, Step, check_count, failure
from rltrain.state import Array, State

_MAIN: Final = "from rltrain.rollout.env_process import main; main()"
_START_SECONDS: Final = 120.0
"""Least time that an environment has to be made in, where time is limited."""
CLOSE_SECONDS: Final = 5.0
"""Longest that one may take to close before its process is ended."""


class EnvProcess:
    """An environment's process: asked one thing at a time, of which the answer is awaited no longer than a limit.

    Args:
        limit: seconds; None waits for ever.
    """

    def __init__(self, setup: Setup, limit: float | None) -> None:
        self._limit, self._setup = limit, setup
        own, other = socket.socketpair()
        with other:
            arguments = [sys.executable, "-c", _MAIN, str(other.fileno()), str(os.getpid())]
            # A group of its own: Ctrl-C in a terminal is for the parent, and what it starts is ended with it.
            self._process = subprocess.Popen(
                arguments,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[other.fileno()],
                process_group=0,
            )
        self._connection: Connection = Connection(own.detach())
        self._deadline = None if limit is None else time.monotonic() + max(limit, _START_SECONDS)
        self._send(setup)

    def made(self) -> Made:
        """The spaces. Raises RltrainError where the environment can't be made."""
        try:
            found: Made = self._receive()
        except NoAnswer as error:
            spec, worker = self._setup.spec, self._setup.worker
            message = f"environment {spec.id!r} can't be made in worker {worker}: {error}"
            raise EnvironmentFailed(message, error.kind) from error
        return found

    def ask(self, name: str, *args: Any) -> None:
        """Have a method of its `EnvList`, or `AgentsEnv`, called."""
        self._deadline = None if self._limit is None else time.monotonic() + self._limit
        self._send((name, args))

    def answer(self) -> Answer | AgentsAnswer:
        """What came of it.

        Raises:
            NoAnswer: the time is over, or the process has ended.
            RltrainError: as the method does.
        """
        found: Answer | AgentsAnswer = self._receive()
        return found

    def hang_up(self) -> None:
        """Let the environment close."""
        self._connection.close()

    def end(self, patience: float = 0.0) -> None:
        """End it, and what it has started, now or once it had some seconds to end by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._connection.close()

    def _send(self, value: object) -> None:
        with contextlib.suppress(OSError):  # that it has ended shows where its answer is awaited
            send(self._connection, value)

    def _receive(self) -> Any:
        try:
            if self._deadline is not None and not self._connection.poll(max(self._deadline - time.monotonic(), 0)):
                raise NoAnswer("time limit", f"there is no answer within the time limit ({self._limit:g} s a step)")
            found = receive(self._connection)
        except (EOFError, OSError):
            raise NoAnswer("process", f"its process {_end(self._process.wait())}") from None
        if isinstance(found, RltrainError):
            raise found
        return found


class NoAnswer(Exception):
    """An environment's process gave none; `kind` is that of the fault."""

    def __init__(self, kind: str, cause: str) -> None:
        super().__init__(cause)
        self.kind = kind


class ProcessEnvs:
    """An `EnvList` whose environments have a process each: what it gives, and its saved states, are the same.

    Args:
        spec: with the limit of a step and the reset that may follow it, or of any other reset.
        num_envs, seed, worker, record: see `EnvList`.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_env`.
    """

    def __init__(self, spec: EnvSpec, num_envs: int, seed: int, worker: int, record: bool) -> None:
        self.num_envs = num_envs
        self._spec, self._seed, self._worker, self._record = spec, seed, worker, record
        self.faults: list[Fault] = []
        self._episodes = [-1] * num_envs
        self._steps = [0] * num_envs
        self._actions: list[list[Array]] = [[] for _ in range(num_envs)]
        self._processes: list[EnvProcess] = []
        try:
            for index in range(num_envs):
                self._processes.append(self._start(index))
            made = [process.made() for process in self._processes]
        except BaseException:
            for process in self._processes:
                process.end()
            raise
        self.observation_space: Space = made[0].observation_space
        self.action_space: Space = made[0].action_space
        self.obs = np.zeros((num_envs, *(self.observation_space.shape or ())), self.observation_space.dtype)
        self._next_obs = np.zeros_like(self.obs)
        self._rewards = np.zeros(num_envs)
        self._terminateds = np.zeros(num_envs, bool)
        self._truncateds = np.zeros(num_envs, bool)

    def reset(self) -> None:
        self._begin(range(self.num_envs))

    def step(self, actions: Array) -> Step:
        for index, process in enumerate(self._processes):
            process.ask("step", actions[index : index + 1])
        valid = np.ones(self.num_envs, bool)
        infos: dict[int, Mapping[str, Any]] = {}
        for index in range(self.num_envs):
            row = self._answer(index)
            valid[index] = row is not None and row.valid
            if row is None:  # `obs` is still what it was
                self._next_obs[index], self._rewards[index] = self.obs[index], 0.0
                self._terminateds[index] = self._truncateds[index] = False
                continue
            self._rewards[index] = row.reward
            self._terminateds[index], self._truncateds[index] = row.terminated, row.truncated
            if self._terminateds[index] or self._truncateds[index]:
                self._count_episode(index)
                infos[index] = row.info
            elif valid[index]:
                self._steps[index] += 1
                if self._record:
                    self._actions[index].append(actions[index])
        rows = None if valid.all() else valid
        return Step(self._next_obs, self._rewards, self._terminateds, self._truncateds, rows, infos)

    def restart(self) -> Array:
        begun = np.zeros(self.num_envs, bool)
        begun[[fault.env for fault in self.faults]] = True
        self.faults = []
        indexes = np.flatnonzero(begun).tolist()
        for index in indexes:
            self._processes[index].end()
            self._processes[index] = self._start(index)
        made: list[int] = []
        for index in indexes:
            try:
                self._processes[index].made()
                made.append(index)
            except RltrainError as error:
                self.faults.append(Fault.of(error, index))
        self._begin(made)
        return begun

    def get_state(self) -> State:
        open_episodes = [np.asarray(actions, self.action_space.dtype) for actions in self._actions]
        return {"episodes": list(self._episodes), "actions": open_episodes, "obs": self.obs.copy()}

    def set_state(self, state: State) -> None:
        check_count(len(state["episodes"]), self.num_envs)
        for index, process in enumerate(self._processes):
            process.ask("set_state", {name: column[index : index + 1] for name, column in state.items()})
            self._episodes[index] = int(state["episodes"][index]) - self._record
            self._count_episode(index)
            if self._record:
                self._actions[index] = list(state["actions"][index])
                self._steps[index] = len(self._actions[index])
        for index in range(self.num_envs):
            self._answer(index)

    def close(self) -> None:
        for process in self._processes:
            process.hang_up()
        failed = {fault.env for fault in self.faults}  # these may hang
        for index, process in enumerate(self._processes):
            process.end(patience=0.0 if index in failed else CLOSE_SECONDS)

    def _start(self, index: int) -> EnvProcess:
        setup = Setup(self._spec, self._seed, self._worker, self._record, index, self._episodes[index])
        return EnvProcess(setup, self._spec.step_timeout_seconds)

    def _begin(self, indexes: Sequence[int]) -> None:
        for index in indexes:
            self._processes[index].ask("reset")
            self._count_episode(index)
        for index in indexes:
            self._answer(index)

    def _count_episode(self, index: int) -> None:
        self._episodes[index] += 1
        self._steps[index] = 0
        self._actions[index].clear()

    def _answer(self, index: int) -> Row | None:
        """Take what a process answers into `obs`, of a step into `_next_obs` too; none of it if that is no answer."""
        try:
            answer = self._processes[index].answer()
        except NoAnswer as error:
            message = failure(
                self._spec, self._seed, self._worker, index, self._episodes[index], self._steps[index], str(error)
            )
            self.faults.append(Fault(error.kind, message, index))
            return None
        assert isinstance(answer, Answer)
        self.faults += [replace(fault, env=index) for fault in answer.faults]
        if answer.row is not None:
            self._next_obs[index] = self._array(answer.row.next_obs)
        self.obs[index] = self._next_obs[index] if answer.obs is None else self._array(answer.obs)
        return answer.row

    def _array(self, data: bytes) -> Array:
        return np.frombuffer(data, self.obs.dtype).reshape(self.obs.shape[1:])


def one_env(spec: EnvSpec, seed: int, worker: int) -> EnvList | ProcessEnvs:
    """A single environment, apart where sampling has its own apart; raises as `ProcessEnvs` does."""
    make = ProcessEnvs if spec.apart else EnvList
    return make(spec, num_envs=1, seed=seed, worker=worker, record=False)


def _end(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
