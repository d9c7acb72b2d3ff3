"""An environment with several agents in a process of its own, which is ended where it hangs."""

from collections.abc import Mapping
from typing import Any

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.models.agents import AgentSpaces
from rltrain.rollout.agents_env import AgentsStep
from rltrain.rollout.env_process import AgentsAnswer, Setup
from rltrain.rollout.subprocesses import CLOSE_SECONDS, EnvProcess, NoAnswer
from rltrain.rollout.vector import failure
from rltrain.state import Array, State


class AgentsProcess:
    """An `AgentsEnv` apart: what it gives, and its saved states, are the same.

    It is being made meanwhile: `made` waits for that.

    Args:
        spec: with the limit of a step, and of a reset.
        seed, worker, index, record: see `AgentsEnv`.

    Attributes:
        obs: what each agent that is to act acts on.
    """

    def __init__(self, spec: EnvSpec, seed: int, worker: int, index: int, record: bool) -> None:
        self._spec, self._seed, self._worker, self._index, self._record = spec, seed, worker, index, record
        self.obs: Mapping[str, Array] = {}
        self._episode = -1
        self._steps = 0
        self._answers = True
        self._process = self._start()

    def made(self) -> tuple[AgentSpaces, AgentSpaces]:
        """Observation and action spaces by agent. Raises RltrainError where it can't be made."""
        made = self._process.made()
        assert isinstance(made.observation_space, AgentSpaces)
        assert isinstance(made.action_space, AgentSpaces)
        return made.observation_space, made.action_space

    def begin(self) -> None:
        """Begin the next episode. Raises EnvironmentFailed."""
        self._episode += 1
        self._steps = 0
        self._call("begin")

    def step(self, actions: Mapping[str, Any]) -> AgentsStep:
        """Every agent of `obs` acts. Raises EnvironmentFailed."""
        self.act(actions)
        return self.outcome()

    def act(self, actions: Mapping[str, Any]) -> None:
        """As `step`, which goes on while others are told to step; `outcome` waits for it."""
        self._process.ask("step", actions)

    def outcome(self) -> AgentsStep:
        """Of what `act` was told. Raises EnvironmentFailed."""
        step: AgentsStep = self._answer()
        self._steps += 1
        return step

    def make_again(self) -> None:
        """Replace a process that has failed or hangs. Raises RltrainError where that can't be."""
        self.end()
        self._process, self._answers = self._start(), True
        self.made()

    def get_state(self) -> State:
        """See `AgentsEnv`."""
        state: State = self._call("get_state")
        return state

    def set_state(self, state: State) -> None:
        """Take up the recorded episode, or begin the one after it. Raises EnvironmentFailed."""
        self._episode = int(state["episode"]) + (not self._record)
        self._steps = int(state.get("steps", 0)) if self._record else 0
        self._call("set_state", state)

    def hang_up(self) -> None:
        """Let the environment close, without waiting for it."""
        self._process.hang_up()

    def close(self) -> None:
        """Free what the environment holds."""
        self._process.hang_up()
        self._process.end(patience=CLOSE_SECONDS if self._answers else 0.0)

    def end(self) -> None:
        """End the process at once."""
        self._process.end()

    def _start(self) -> EnvProcess:
        own = self._spec, self._seed, self._worker, self._record, self._index, self._episode
        return EnvProcess(Setup(*own, several_agents=True), self._spec.step_timeout_seconds)

    def _call(self, name: str, *args: Any) -> Any:
        self._process.ask(name, *args)
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._process.answer()
        except NoAnswer as error:
            self._answers = False
            place = self._worker, self._index, self._episode, self._steps
            raise EnvironmentFailed(failure(self._spec, self._seed, *place, str(error)), error.kind) from error
        assert isinstance(answer, AgentsAnswer)
        self.obs = answer.obs
        return answer.result
