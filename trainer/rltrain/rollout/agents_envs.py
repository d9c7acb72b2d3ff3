"""Environments with several agents, one after another in this process or each in its own."""

from collections.abc import Sequence

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed
from rltrain.models.agents import AgentSpaces
from rltrain.rollout.agents_env import AgentsEnv
from rltrain.rollout.agents_process import AgentsProcess
from rltrain.rollout.vector import check_count
from rltrain.state import State


class ParallelEnvs:
    """Several environments with several agents each.

    Args:
        spec: says whether they have processes of their own.
        record: see `AgentsEnv`.

    Raises:
        UnknownEnvironment, EnvironmentFailed: see `make_parallel_env`.
    """

    envs: Sequence[AgentsEnv | AgentsProcess]
    observation_space: AgentSpaces
    action_space: AgentSpaces

    def __init__(self, spec: EnvSpec, num_envs: int, seed: int, worker: int, record: bool) -> None:
        self.num_envs, self._record = num_envs, record
        if not spec.apart:
            own = [AgentsEnv(spec, seed, worker, index, record) for index in range(num_envs)]
            self.envs, self.observation_space, self.action_space = own, own[0].observation_space, own[0].action_space
            return
        apart: list[AgentsProcess] = []
        self.envs = apart
        try:
            for index in range(num_envs):
                apart.append(AgentsProcess(spec, seed, worker, index, record))
            for env in apart:  # while the others are being made, too
                self.observation_space, self.action_space = env.made()
        except BaseException:
            for env in apart:
                env.end()
            raise

    def get_state(self) -> State:
        """Of each of them."""
        return {"envs": [env.get_state() for env in self.envs]}

    def set_state(self, state: State) -> dict[int, EnvironmentFailed]:
        """Go on from a saved state; returns why those have failed, by index, that should have begun a new episode.

        Raises:
            CheckpointMismatch: it is of another number of environments.
            EnvironmentFailed: a recorded episode can't be taken up.
        """
        check_count(len(state["envs"]), self.num_envs)
        failed: dict[int, EnvironmentFailed] = {}
        for index, (env, saved) in enumerate(zip(self.envs, state["envs"], strict=True)):
            try:
                env.set_state(saved)
            except EnvironmentFailed as error:
                if self._record:
                    raise
                failed[index] = error
        return failed

    def close(self) -> None:
        """Close all of them."""
        for env in self.envs:
            if isinstance(env, AgentsProcess):
                env.hang_up()
        for env in self.envs:
            env.close()
