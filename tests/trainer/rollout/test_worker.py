"""Rollout workers: exact fragments, spaces, and resumes that go on bit by bit."""

import numpy as np
import pytest

from probes.envs import SPACES
from rltrain.api.config import DDPPOConfig, DQNConfig, PlanConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import UnsupportedSpace
from rltrain.policies.registry import ACTION_SPACES
from rltrain.rollout import columns as c
from rltrain.rollout.native import NextStepEnvs
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import content_hash

DQN = DQNConfig(rollout_fragment_length=4, num_envs_per_worker=3)
DDPPO = DDPPOConfig(rollout_fragment_length=10, num_envs_per_worker=2, sgd_minibatch_size=7, num_sgd_iter=2)


def worker(plan: str, config: PlanConfig, env_id: str = "CartPole-v1", **options: object) -> RolloutWorker:
    kwargs = options.pop("kwargs", {})
    env = EnvSpec(id=env_id, kwargs=kwargs)  # type: ignore[arg-type]
    return RolloutWorker(WorkerSpec(plan, env, config, seed=3, **options))  # type: ignore[arg-type]


def test_a_sample_has_exactly_fragment_times_environments_transitions() -> None:
    assert [worker("DQN", DQN, index=1, num_workers=1).sample().count for _ in range(3)] == [12, 12, 12]
    config = DDPPOConfig(rollout_fragment_length=10, num_envs_per_worker=16)
    native = worker("DDPPO", config)
    assert isinstance(native._collector._envs, NextStepEnvs)  # type: ignore[union-attr]
    assert [native.sample().count for _ in range(10)] == [160] * 10
    assert native.drain_episodes()


def test_the_driver_s_own_worker_makes_no_vector_while_others_sample() -> None:
    own = worker("DQN", DQN, num_workers=2)
    assert own._collector is None
    assert own.get_state()["sampling"] is None
    assert own.sample().count == 12, "without the others it samples"


def test_first_weights_are_the_same_in_every_worker_but_their_actions_are_not() -> None:
    first, second = worker("DDPPO", DDPPO, index=1), worker("DDPPO", DDPPO, index=2)
    assert content_hash(first.policy.learned_state()) == content_hash(second.policy.learned_state())
    assert first.sample()[c.ACTIONS].tolist() != second.sample()[c.ACTIONS].tolist()


@pytest.mark.parametrize(("plan", "config"), [("DQN", DQN), ("DDPPO", DDPPO)])
def test_a_serial_worker_restored_from_its_state_goes_on_bit_by_bit(plan: str, config: PlanConfig) -> None:
    def advance(each: RolloutWorker) -> str:
        batch = each.sample()
        info = each.policy.learn_on_batch(batch)
        each.set_global_step(each.policy.get_state()["global_step"] + batch.count)
        each.policy.update_target()
        episodes = [[record.return_, record.length] for record in each.drain_episodes()]
        return content_hash([dict(batch.columns), info.stats, episodes, each.get_state()])

    straight = worker(plan, config, index=1, serial=True)
    for _ in range(15):
        advance(straight)
    state = straight.get_state()
    resumed = worker(plan, config, index=1, serial=True)
    resumed.set_state(state)
    assert content_hash(resumed.get_state()) == content_hash(state)
    assert [advance(straight) for _ in range(10)] == [advance(resumed) for _ in range(10)]


def test_a_state_holds_no_view_of_what_goes_on_changing() -> None:
    straight = worker("DQN", DQN, index=1, serial=True)
    straight.sample()
    state = straight.get_state()
    before = content_hash(state)
    for _ in range(20):
        straight.policy.learn_on_batch(straight.sample())
    assert content_hash(state) == before


def test_outside_serial_mode_a_restored_worker_begins_new_episodes_and_keeps_the_policy() -> None:
    first = worker("DQN", DQN, index=1)
    first.sample()
    second = worker("DQN", DQN, index=1)
    second.set_state(first.get_state())
    assert content_hash(second.policy.get_state()) == content_hash(first.policy.get_state())
    batch = second.sample()
    assert (batch[c.OBS].reshape(3, 4, 4)[:, 0] < 0.05).all(), "each environment's first row follows a reset"
    assert second.sample().count == 12


@pytest.mark.parametrize("obs", ["unit", "image", "float64", "integers", "scalar", "two", "multi", "multi 2d", "bits"])
@pytest.mark.parametrize("plan", ["DQN", "DDPPO"])
def test_plans_take_these_observation_spaces(plan: str, obs: str) -> None:
    config = DQN if plan == "DQN" else DDPPO
    each = worker(plan, config, "probes.envs:Spaces", kwargs={"obs": obs})
    batch = each.sample()
    assert batch[c.OBS].dtype == SPACES[obs].dtype
    assert np.isfinite(list(each.policy.learn_on_batch(batch).stats.values())).all()


@pytest.mark.parametrize(
    "act",
    [name for name, space in SPACES.items() if isinstance(space, ACTION_SPACES["DDPPO"])],
)
def test_ddppo_takes_these_action_spaces_and_the_environment_sees_only_contained_actions(act: str) -> None:
    each = worker("DDPPO", DDPPO, "probes.envs:Spaces", kwargs={"act": act})
    for _ in range(5):
        batch = each.sample()
        assert np.isfinite(list(each.policy.learn_on_batch(batch).stats.values())).all()


@pytest.mark.parametrize("act", ["two", "from minus one"])
def test_dqn_takes_discrete_actions_from_any_start(act: str) -> None:
    batch = worker("DQN", DQN, "probes.envs:Spaces", kwargs={"act": act}).sample()
    assert batch[c.ACTIONS].min() >= 0


@pytest.mark.parametrize(
    ("plan", "kwargs", "words"),
    [
        ("DQN", {"act": "unit"}, r"plan DQN can't take the action space Box.*plans that take it: CQL, DDPPO"),
        ("DQN", {"act": "multi"}, r"MultiDiscrete.*plans that take it: DDPPO"),
        ("DDPPO", {"act": "tuple"}, r"plan DDPPO can't take the action space Tuple.*no plan takes it"),
        ("DDPPO", {"obs": "text in a dict"}, r"observation space Dict.*FlattenObservation"),
        ("DQN", {"obs": "text"}, r"observation space Text"),
    ],
)
def test_spaces_that_a_plan_cannot_handle_are_refused_with_what_can(
    plan: str, kwargs: dict[str, str], words: str
) -> None:
    with pytest.raises(UnsupportedSpace, match=words):
        worker(plan, DQN if plan == "DQN" else DDPPO, "probes.envs:Spaces", kwargs=kwargs)
