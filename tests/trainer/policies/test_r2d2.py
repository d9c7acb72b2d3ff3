"""R2D2's update against one worked out sequence by sequence, step by step, without padding."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.api.config import ExplorationConfig, R2D2Config, RecurrentModelConfig
from rltrain.policies.r2d2 import R2D2Policy, sequence_priority, squash, unsquash
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.state import Array, content_hash

OBS = spaces.Box(-np.inf, np.inf, (3,), np.float32)
EPSILON = 1e-3
RNG = np.random.default_rng(0)


def policy(seed: int = 1, burn_in: int = 4, learnt: int = 3, **options: Any) -> R2D2Policy:
    """A small one whose target network isn't the online one, so that mixing them up shows."""
    model = RecurrentModelConfig(
        fcnet_hiddens=(8,), lstm_cell_size=6, max_seq_len=learnt, recurrent=options.pop("recurrent", "LSTM")
    )
    options = {"zero_init_states": False, "grad_clip": None, **options}
    config = R2D2Config(policy="R2D2", model=model, hiddens=(8,), burn_in=burn_in, **options)
    made = R2D2Policy(config, OBS, spaces.Discrete(4), Seeds(seed))
    other = R2D2Policy(config, OBS, spaces.Discrete(4), Seeds(seed + 1))
    made._target_flat.set(other.get_weights())
    # Of larger weights, for which other actions are the best ones at other steps.
    made._flat.vector.mul_(4)
    made._target_flat.vector.mul_(4)
    return made


def sequences(
    each: R2D2Policy, starts: list[int], lengths: list[int], padding: float = 0.0, seed: int | None = None
) -> Batch:
    """Sequences whose observations before `start` and after the one that follows the last step are padding."""
    rng = RNG if seed is None else np.random.default_rng(seed)
    shape, count = each._shape, len(starts)
    obs = rng.normal(size=(count, shape.length + 1, 3)).astype(np.float32) * 2
    actions = rng.integers(4, size=(count, shape.learnt))
    rewards = rng.normal(size=(count, shape.learnt)).astype(np.float32) * 3
    discounts = np.full((count, shape.learnt), 0.9, np.float32)
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        obs[row, :start] = obs[row, shape.burn_in + length + 1 :] = padding
        rewards[row, length:] = padding
        if row % 2:
            discounts[row, length - 1] = 0  # this episode terminated with its last step
    return Batch(
        {
            c.OBS: obs,
            c.ACTIONS: actions,
            c.REWARDS: rewards,
            c.DISCOUNTS: discounts,
            c.START: np.array(starts),
            c.SEQ_LENS: np.array(lengths),
            c.STATE: rng.normal(size=(count, each.initial_state(1).shape[1])).astype(np.float32),
            c.WEIGHTS: rng.random(count).astype(np.float32),
        }
    )


def some(each: R2D2Policy) -> Batch:
    """A sequence of each start that there can be, some of them short."""
    starts = each._shape.starts
    return sequences(each, starts, [each._shape.learnt, 1, 2, 3][: len(starts)])


def step_by_step(network: Any, obs: Array, state: Array) -> Iterator[torch.Tensor]:
    """Values at each observation of one stretch of an episode, (actions,)."""
    memory = torch.from_numpy(state)[None]
    for each in torch.from_numpy(obs):
        scores, memory = network(each[None, None], memory)
        yield scores[0, 0]


def td_errors(each: R2D2Policy, batch: Batch, row: int) -> list[float]:
    """Of one sequence's learnt steps, with the formulas as the paper writes them."""
    config, shape = each._config, each._shape
    start, length = int(batch[c.START][row]), int(batch[c.SEQ_LENS][row])
    obs, state = batch[c.OBS][row][start : shape.burn_in + length + 1], batch[c.STATE][row]
    with torch.no_grad():
        online = list(step_by_step(each._network, obs, state))
        target = list(step_by_step(each._target, obs, state))
    first, errors = shape.burn_in - start, []
    for t in range(length):
        chooser = (online if config.double_q else target)[first + t + 1]
        following = float(target[first + t + 1][chooser.argmax()])
        reward, discount = float(batch[c.REWARDS][row, t]), float(batch[c.DISCOUNTS][row, t])
        if config.use_h_function:
            root = (np.sqrt(1 + 4 * EPSILON * (abs(following) + 1 + EPSILON)) - 1) / (2 * EPSILON)
            wanted = reward + discount * np.sign(following) * (root**2 - 1)
            wanted = np.sign(wanted) * (np.sqrt(abs(wanted) + 1) - 1) + EPSILON * wanted
        else:
            wanted = reward + discount * following
        errors.append(float(online[first + t][batch[c.ACTIONS][row, t]]) - wanted)
    return errors


def gradient(each: R2D2Policy) -> torch.Tensor:
    """The one that Adam was given in its first step, from its running mean."""
    assert float(each._adam.moments.step) == 1
    return each._adam.moments.mean / 0.1


@pytest.mark.parametrize("recurrent", ["LSTM", "GRU"])
@pytest.mark.parametrize("burn_in", [0, 2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"use_h_function": False}, {"double_q": False, "dueling": False}])
def test_loss_and_priorities_are_those_of_each_sequence_by_itself(
    recurrent: str, burn_in: int, options: dict[str, Any]
) -> None:
    each = policy(burn_in=burn_in, recurrent=recurrent, **options)
    batch = some(each)
    errors = [np.array(td_errors(each, batch, row)) for row in range(batch.count)]
    info = each.learn_on_batch(batch)
    assert info.td_error is not None
    expected = [0.9 * np.abs(error).max() + 0.1 * np.abs(error).mean() for error in errors]
    np.testing.assert_allclose(info.td_error, expected, rtol=1e-3)
    huber = [np.where(np.abs(error) < 1, error**2 / 2, np.abs(error) - 0.5).sum() for error in errors]
    assert info.stats["loss"] == pytest.approx(float((batch[c.WEIGHTS] * huber).sum()) / batch.steps, rel=1e-3)
    assert info.stats["mean_td_error"] == pytest.approx(float(np.concatenate(errors).mean()), rel=1e-2, abs=1e-3)


def test_a_terminated_step_has_its_reward_alone_and_a_truncated_one_bootstraps() -> None:
    ends = {c.TERMINATEDS: np.array([False, True, False]), c.TRUNCATEDS: np.array([False, False, True])}
    each = policy()
    gamma = each._config.gamma
    np.testing.assert_allclose(each.postprocess(Batch(ends))[c.DISCOUNTS], [gamma, 0, gamma])


def test_burn_in_brings_the_state_and_has_no_gradient() -> None:
    each, twin = policy(burn_in=3), policy(burn_in=3)
    batch = sequences(each, [0, 0], [3, 2])
    with torch.no_grad():
        burnt = [
            network(torch.from_numpy(batch[c.OBS][:, :3]), torch.from_numpy(batch[c.STATE]))[1].numpy()
            for network in (twin._network, twin._target)
        ]
    twin._target_flat.set(twin.get_weights())
    each._target_flat.set(each.get_weights())
    each.learn_on_batch(batch)
    # The same from where burn-in has come to, as if its steps had never been.
    twin.learn_on_batch(batch.with_columns(**{c.START: np.array([3, 3]), c.STATE: burnt[0]}))
    torch.testing.assert_close(gradient(each), gradient(twin))
    assert float(gradient(each).norm()) > 0
    assert not np.allclose(burnt[0], batch[c.STATE]), "burn-in has changed the state"


def test_padding_changes_nothing() -> None:
    results = []
    for padding in (0.0, 7.0):
        each = policy(burn_in=5)
        info = each.learn_on_batch(sequences(each, each._shape.starts, [1, 3, 2], padding, seed=5))
        assert info.td_error is not None
        results.append((gradient(each), torch.from_numpy(info.td_error), info.stats["min_q"], info.stats["max_q"]))
    torch.testing.assert_close(results[0], results[1])


def test_sequences_begin_with_the_state_they_were_acted_with_or_with_zeros() -> None:
    batch = some(policy())
    without = Batch({name: column for name, column in batch.columns.items() if name != c.STATE})
    zeros = batch.with_columns(**{c.STATE: np.zeros_like(batch[c.STATE])})
    stored, absent, zero = (policy().learn_on_batch(each).td_error for each in (batch, without, zeros))
    assert stored is not None
    assert absent is not None
    assert not np.allclose(stored, absent)
    np.testing.assert_array_equal(absent, zero)


def test_the_importance_weights_scale_each_sequences_part_of_the_gradient() -> None:
    batch, gradients = sequences(policy(), [0, 4], [3, 2]), []
    for weights in ([1, 0], [0, 1], [0.25, 0.5]):
        each = policy()
        each.learn_on_batch(batch.with_columns(**{c.WEIGHTS: np.array(weights, np.float32)}))
        gradients.append(gradient(each))
    torch.testing.assert_close(gradients[2], 0.25 * gradients[0] + 0.5 * gradients[1], rtol=1e-4, atol=1e-6)


@settings(deadline=None)
@given(st.floats(-1e5, 1e5, width=32))
def test_h_and_its_inverse_undo_each_other(x: float) -> None:
    value = torch.tensor(x)
    torch.testing.assert_close(unsquash(squash(value, EPSILON), EPSILON), value, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(squash(unsquash(value / 100, EPSILON), EPSILON), value / 100, rtol=1e-4, atol=1e-5)


def test_h_is_the_square_root_s_scale() -> None:
    x = torch.tensor([-99.0, 0.0, 3.0, 99.0])
    torch.testing.assert_close(squash(x, EPSILON), torch.tensor([-9 - 0.099, 0.0, 1.003, 9.099]))


def test_errors_of_both_signs_do_not_cancel_in_a_priority() -> None:
    errors = torch.tensor([[3.0, -3.0, 100.0], [1.0, 2.0, -6.0]])
    learnt = torch.tensor([[True, True, False], [True, True, True]])
    torch.testing.assert_close(sequence_priority(errors, learnt), torch.tensor([3.0, 0.9 * 6 + 0.1 * 3]))


@pytest.mark.parametrize("recurrent", ["LSTM", "GRU"])
def test_acting_step_by_step_sees_what_the_network_sees_of_the_whole(recurrent: str) -> None:
    each = policy(recurrent=recurrent)
    obs = RNG.normal(size=(5, 9, 3)).astype(np.float32)
    with torch.no_grad():
        scores, last = each._network(torch.from_numpy(obs), torch.zeros(5, each._network.state_size))
    state = None
    for t in range(9):
        actions, columns = each.compute_actions(obs[:, t], explore=False, state=state)
        np.testing.assert_array_equal(actions, scores[:, t].argmax(dim=1))
        assert columns[c.STATE].dtype == np.float32
        if state is not None:
            np.testing.assert_array_equal(columns[c.STATE], state)
        state = columns[c.NEXT_STATE]
    assert state is not None
    np.testing.assert_allclose(state, last, atol=1e-6)


def test_epsilon_is_the_share_of_random_actions() -> None:
    exploration = ExplorationConfig(initial_epsilon=0.4, final_epsilon=0.4)
    each, obs = policy(exploration_config=exploration), RNG.normal(size=(20_000, 3)).astype(np.float32)
    best, actions = (each.compute_actions(obs, explore=explore)[0] for explore in (False, True))
    assert np.mean(actions != best) == pytest.approx(0.4 * 3 / 4, abs=0.01)


def test_the_target_network_changes_only_when_it_is_updated_and_then_wholly() -> None:
    each = policy()
    before = content_hash(each.learned_state()["target"])
    each.learn_on_batch(some(each))
    assert content_hash(each.learned_state()["target"]) == before
    each.update_target()
    obs, state = torch.randn(2, 4, 3), torch.randn(2, each._network.state_size)
    with torch.no_grad():
        torch.testing.assert_close(each._target(obs, state), each._network(obs, state))


def test_the_defaults_are_the_papers_and_rllibs() -> None:
    config = R2D2Config(policy="R2D2")
    assert (config.lr, config.gamma, config.adam_epsilon, config.double_q) == (1e-4, 0.997, 1e-3, True)
    assert (config.target_network_update_freq, config.training_intensity) == (2500, 150)
    assert (config.use_h_function, config.h_function_epsilon, config.prioritized_replay) == (True, 1e-3, False)
    assert config.sequences_per_batch == 1000 // (config.burn_in + config.model.max_seq_len)
    long = RecurrentModelConfig(max_seq_len=2000)
    assert R2D2Config(policy="R2D2", model=long).sequences_per_batch == 1
