"""A recurrent policy's state goes with each environment's episode, and begins anew with the next one."""

from typing import Any

import numpy as np
import pytest
import torch

from rltrain.api.config import R2D2Config, RecurrentModelConfig
from rltrain.api.env import EnvSpec
from rltrain.policies.r2d2 import R2D2Policy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.evaluation import NUM_ENVS, evaluate
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.recording import record
from rltrain.rollout.worker import RolloutWorker, WorkerSpec

SHORT = EnvSpec(id="probes.envs:Short")
CARTPOLE = EnvSpec(id="CartPole-v1")
"""Has a native vector, whose environments reset themselves one step after an episode's end."""


def worker(env: EnvSpec, num_envs: int, serial: bool = False, **options: Any) -> RolloutWorker:
    model = RecurrentModelConfig(fcnet_hiddens=(8,), lstm_cell_size=6)
    options = {"zero_init_states": False, "num_envs_per_worker": num_envs, "rollout_fragment_length": 7, **options}
    config = R2D2Config(policy="R2D2", model=model, hiddens=(8,), **options)
    return RolloutWorker(WorkerSpec("OffPolicy", env, config, seed=0, serial=serial))


def check_states(policy: Any, rows: Batch) -> None:
    """Each row's state is what the network remembers of its episode's earlier observations, and of no other."""
    for episode in np.unique(rows[c.EPS_ID]):
        chosen = np.flatnonzero(rows[c.EPS_ID] == episode)
        chosen = chosen[np.argsort(rows[c.T][chosen])]
        assert rows[c.T][chosen[0]] == 0
        state = torch.zeros(1, policy._network.state_size)
        for row in chosen:
            np.testing.assert_allclose(rows[c.STATE][row], state[0].numpy(), atol=1e-5)
            with torch.no_grad():
                _, state = policy._network(torch.from_numpy(rows[c.OBS][row : row + 1])[None], state)


@pytest.mark.parametrize(("env", "num_envs"), [(SHORT, 3), (CARTPOLE, 9)])
def test_recorded_states_are_those_of_the_rows_own_episode(env: EnvSpec, num_envs: int) -> None:
    each = worker(env, num_envs)
    assert isinstance(each._collector._envs, NextStepEnvs) == (env is CARTPOLE)  # type: ignore[union-attr]
    rows = Batch.concat([each.sample() for _ in range(8)])
    assert len(np.unique(rows[c.EPS_ID])) > num_envs, "episodes have ended"
    check_states(each.policy, rows)


def test_states_are_not_recorded_where_sequences_begin_with_zeros() -> None:
    assert c.STATE not in worker(SHORT, 2, zero_init_states=True).sample()


def test_a_serial_worker_goes_on_with_what_it_remembered() -> None:
    whole, parts = worker(SHORT, 2, serial=True), worker(SHORT, 2, serial=True)
    before = whole.sample()
    parts.set_state(whole.get_state())
    one, other = whole.sample(), parts.sample()
    assert all(np.array_equal(one[name], other[name]) for name in one.columns)
    assert one[c.STATE][0].any(), "an episode was open"
    check_states(whole.policy, Batch.concat([before, one]))


def test_other_workers_begin_new_episodes_with_nothing_remembered() -> None:
    one, other = worker(SHORT, 2), worker(SHORT, 2)
    one.sample()
    other.set_state(one.get_state())
    check_states(other.policy, other.sample())


def test_an_evaluation_is_the_same_for_any_number_of_environments() -> None:
    policy: Any = worker(CARTPOLE, 1).policy
    policy._flat.vector.mul_(4)  # so that what is remembered decides
    returns = [
        [each.return_ for each in evaluate(policy, CARTPOLE, 12, seed=1, num_envs=count)] for count in (1, 5, NUM_ENVS)
    ]
    assert returns[0] == returns[1] == returns[2]


def test_a_recording_acts_as_an_evaluation_does() -> None:
    policy = worker(CARTPOLE, 1).policy
    assert isinstance(policy, R2D2Policy)
    rows = record(CARTPOLE, policy, steps=40, seed=0)
    for episode in np.unique(rows[c.EPS_ID]):
        obs = torch.from_numpy(rows[c.OBS][rows[c.EPS_ID] == episode])
        with torch.no_grad():
            scores, _ = policy._network(obs[None], torch.zeros(1, policy._network.state_size))
        np.testing.assert_array_equal(rows[c.ACTIONS][rows[c.EPS_ID] == episode], scores[0].argmax(dim=1))
