"""What the compiler is given computes what the policy does: traced functions beside the plain ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.fx.experimental.proxy_tensor import make_fx

from rltrain.api.config import DDPPOConfig, DQNConfig, ModelConfig
from rltrain.compiled.function import Function
from rltrain.compiled.tracing import traced
from rltrain.policies.dqn import DQNPolicy
from rltrain.policies.native import use_native_code
from rltrain.policies.ppo import PPOPolicy
from rltrain.policies.torch_policy import Seeds, TorchPolicy
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch

OBS = spaces.Box(-1, 1, (3,))
SMALL = ModelConfig(fcnet_hiddens=(16,))


class Tracer:
    """A compiler that runs what it has recorded, from zeros as the compiling process records it."""

    def run(self, function: Function, signature: Any, arguments: Sequence[torch.Tensor | None]) -> Any:
        given = [each for each in arguments if each is not None]

        def call(*present: torch.Tensor) -> tuple[torch.Tensor, ...]:
            following = iter(present)
            return function.function(*[None if each is None else next(following) for each in arguments])

        with traced():
            graph = make_fx(call)(*[torch.zeros_like(each) for each in given])
        function.native[signature] = lambda tensors: graph(*tensors)
        return graph(*given)


def recorded(policy: TorchPolicy) -> TorchPolicy:
    for function in policy.functions.values():
        function.compiler = Tracer()
    return policy


def batch(space: spaces.Space[Any], seed: int, count: int = 50) -> Batch:
    rng = np.random.default_rng(seed)
    numbers = {
        name: rng.normal(size=count).astype(np.float32)
        for name in (c.REWARDS, c.WEIGHTS, c.ACTION_LOGP, c.VF_PREDS, c.VALUE_TARGETS, c.ADVANTAGES)
    }
    space.seed(seed)
    return Batch(
        {
            **numbers,
            c.WEIGHTS: np.abs(numbers[c.WEIGHTS]),
            c.OBS: rng.normal(size=(count, 3)).astype(np.float32),
            c.NEXT_OBS: rng.normal(size=(count, 3)).astype(np.float32),
            c.ACTIONS: np.array([space.sample() for _ in range(count)]),
            c.DISCOUNTS: np.where(rng.random(count) < 0.2, 0, 0.99).astype(np.float32),
        }
    )


def assert_alike(plain: TorchPolicy, other: TorchPolicy, space: spaces.Space[Any]) -> None:
    for seed in range(5):
        rows = batch(space, seed)
        first, second = plain.learn_on_batch(rows), other.learn_on_batch(rows)  # type: ignore[attr-defined]
        assert first.stats == pytest.approx(second.stats, rel=1e-4, abs=1e-5)
        if first.td_error is not None:
            np.testing.assert_allclose(first.td_error, second.td_error, rtol=0, atol=1e-5)
        actions, others = (each.compute_actions(rows[c.OBS], explore=True) for each in (plain, other))  # type: ignore[attr-defined]
        np.testing.assert_allclose(actions[0], others[0], atol=1e-5)
    for name, weights in plain.get_weights().items():
        np.testing.assert_allclose(weights, other.get_weights()[name], rtol=0, atol=1e-5)
    for name, moment in plain.learned_state()["optimizer"].items():
        np.testing.assert_allclose(moment, other.learned_state()["optimizer"][name], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"double_q": False, "dueling": False}, {"noisy": True}, {"num_atoms": 7}, {"grad_clip": 0.01, "hiddens": ()}],
    ids=["plain", "single", "noisy", "atoms", "clipped"],
)
def test_dqn_as_recorded_for_the_compiler_learns_as_it_does_plainly(options: dict[str, Any]) -> None:
    config, space = DQNConfig(**{"model": SMALL, "hiddens": (16,), **options}), spaces.Discrete(4)
    plain, other = (DQNPolicy(config, OBS, space, Seeds(0)) for _ in range(2))
    assert_alike(plain, recorded(other), space)


@pytest.mark.parametrize("space", [spaces.Discrete(4), spaces.MultiDiscrete([2, 3]), spaces.Box(-1, 1, (2,))])
def test_ppo_as_recorded_for_the_compiler_learns_as_it_does_plainly(space: spaces.Space[Any]) -> None:
    config = DDPPOConfig(model=SMALL, num_sgd_iter=2, sgd_minibatch_size=25, entropy_coeff=0.01)
    plain, other = (PPOPolicy(config, OBS, space, Seeds(0)) for _ in range(2))
    assert_alike(plain, recorded(other), space)


@pytest.mark.timeout(900)
def test_native_code_learns_as_the_plain_functions_do() -> None:
    # Compiled for real, once a change of what is compiled: later runs find the code in the user's cache.
    space = spaces.Discrete(4)
    config = DQNConfig(model=SMALL, hiddens=(16,), compile="Always")
    plain, native = (DQNPolicy(config, OBS, space, Seeds(0)) for _ in range(2))
    use_native_code(native, "DQN", config, OBS, space, serial=True)
    for seed in range(5):
        rows = batch(space, seed)
        assert plain.learn_on_batch(rows).stats == pytest.approx(native.learn_on_batch(rows).stats, rel=1e-4, abs=1e-5)
    for name, weights in plain.get_weights().items():
        np.testing.assert_allclose(weights, native.get_weights()[name], rtol=0, atol=1e-5)
    assert native.functions["update"].native, "or it was the plain function that learnt"


@pytest.mark.parametrize(("mode", "serial", "expected"), [("Auto", True, 0), ("Never", False, 0), ("Auto", False, 2)])
def test_a_serial_run_waits_for_code_or_has_none(mode: Any, serial: bool, expected: int) -> None:
    config = DQNConfig(model=SMALL, compile=mode)
    policy = DQNPolicy(config, OBS, spaces.Discrete(2), Seeds(0))
    use_native_code(policy, "DQN", config, OBS, spaces.Discrete(2), serial=serial)
    assert sum(function.compiler is not None for function in policy.functions.values()) == expected
