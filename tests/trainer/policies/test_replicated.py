"""Copies of a policy on several devices of one process."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rltrain.api.config import DQNConfig, R2D2Config
from rltrain.policies.base import RecurrentPolicy
from rltrain.policies.registry import make_policy
from rltrain.policies.replicated import ReplicatedPolicy, replicated
from rltrain.policies.sharing import Share, alone, together
from rltrain.rollout.batch import Batch
from rltrain.state import content_hash
from trainer.policies.test_sharing import MAKES


def hashes(policy: ReplicatedPolicy) -> set[str]:
    return {content_hash(copy.get_state()) for copy in policy.copies}


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("name", MAKES)
def test_several_devices_learn_what_one_learns_of_the_same_batches_whatever_is_done_between(
    name: str, devices: int
) -> None:
    make: Callable[[], Any]
    make, rows = MAKES[name]
    one, several = make(), replicated([make() for _ in range(devices)])
    assert isinstance(several, ReplicatedPolicy)
    obs = rows()["obs"].reshape(-1, 3)[:4]
    for number in range(4):
        batch = rows()
        for policy in (one, several):
            policy.set_global_step(10 * number)
            policy.compute_actions(obs, explore=True)
        expected, info = one.learn_on_batch(batch), several.learn_on_batch(batch)
        assert info.td_error is not None
        np.testing.assert_allclose(info.td_error, expected.td_error, atol=1e-5)
        assert info.stats == pytest.approx(expected.stats, abs=1e-4, rel=1e-4)
        one.update_target()
        several.update_target()
    for policy_name, value in several.get_weights().items():
        np.testing.assert_allclose(value, one.get_weights()[policy_name], atol=1e-5)
    assert len({content_hash(copy.learned_state()) for copy in several.copies}) == 1


def test_a_state_is_taken_up_by_every_copy() -> None:
    make, rows = MAKES["SAC"]
    saved, resumed = (replicated([make() for _ in range(2)]) for _ in range(2))
    assert isinstance(resumed, ReplicatedPolicy)
    saved.learn_on_batch(rows())
    resumed.set_state(saved.get_state())
    assert hashes(resumed) == {content_hash(saved.get_state())}
    batch = rows()
    assert saved.learn_on_batch(batch).stats == resumed.learn_on_batch(batch).stats
    resumed.set_weights(make().get_weights())
    assert len({content_hash(copy.get_weights()) for copy in resumed.copies}) == 1


def test_machines_of_several_devices_share_a_batch_like_machines_of_one() -> None:
    make, rows = MAKES["DQN"]
    batch: Batch = rows()
    one, machines = make(), [replicated([make() for _ in range(2)]) for _ in range(2)]
    expected = one.learn_on_batch(batch)
    infos = alone(together([each.learn_share(batch, Share(index, 2)) for index, each in enumerate(machines)]))
    found: list[Any] = [info.td_error for info in infos]
    np.testing.assert_allclose(np.concatenate(found), expected.td_error, atol=1e-5)
    for each in machines:
        for name, value in each.get_weights().items():
            np.testing.assert_allclose(value, one.get_weights()[name], atol=1e-5)


def test_a_policy_on_several_devices_is_made_as_on_one_and_remembers_where_that_one_does() -> None:
    from gymnasium import spaces

    box, two = spaces.Box(-1, 1, (3,)), spaces.Discrete(2)
    one = make_policy("DQN", DQNConfig(), box, two, seed=3)
    several = make_policy("DQN", DQNConfig(), box, two, seed=3, devices=("cpu", "cpu"))
    assert isinstance(several, ReplicatedPolicy)
    assert not isinstance(several, RecurrentPolicy)
    assert hashes(several) == {content_hash(one.get_state())}
    recurrent = make_policy("OffPolicy", R2D2Config(policy="R2D2"), box, two, seed=3, devices=("cpu", "cpu"))
    assert isinstance(recurrent, RecurrentPolicy)
    assert recurrent.initial_state(2).shape[0] == 2
