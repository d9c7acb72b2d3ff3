"""Adam against torch's own."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.adam import adam as their_adam

from rltrain.api.errors import CheckpointMismatch
from rltrain.models.adam import Adam
from rltrain.models.flat import FlatParameters


def test_many_steps_move_as_torch_s_own_adam() -> None:
    torch.manual_seed(0)
    mine, theirs = nn.Linear(7, 3), nn.Linear(7, 3)
    theirs.load_state_dict(mine.state_dict())
    flat = FlatParameters(mine)
    adam = Adam(flat, 1e-5)
    parameters = [theirs.weight, theirs.bias]
    means, squares = ([torch.zeros_like(parameter) for parameter in parameters] for _ in range(2))
    steps = [torch.tensor(0.0) for _ in parameters]
    for step in range(50):
        lr = 1e-2 / (step + 1)
        x = torch.randn(4, 7)
        flat.gradient.zero_()
        mine(x).square().sum().backward()
        adam.step(lr)
        slopes = list(torch.autograd.grad(theirs(x).square().sum(), parameters))
        with torch.no_grad():  # the class torch.optim.Adam would import torch's compiler
            their_adam(
                parameters,
                slopes,
                means,
                squares,
                max_exp_avg_sqs=[],
                state_steps=steps,
                foreach=False,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=lr,
                weight_decay=0.0,
                eps=1e-5,
                maximize=False,
            )
    torch.testing.assert_close(mine.weight, theirs.weight)
    torch.testing.assert_close(mine.bias, theirs.bias)


def test_moments_of_another_network_are_refused() -> None:
    adam = Adam(FlatParameters(nn.Linear(2, 2)), 1e-8)
    other = Adam(FlatParameters(nn.Linear(3, 2)), 1e-8)
    with pytest.raises(CheckpointMismatch, match=r"'mean' is \(8,\), this network's \(6,\)"):
        adam.set(other.get())
    assert adam.get()["step"] == np.float32(0)


def test_a_first_update_does_not_import_torch_s_compiler() -> None:
    code = (
        "import sys, gymnasium, numpy as np\n"
        "from rltrain.api.config import DQNConfig\n"
        "from rltrain.api.env import EnvSpec\n"
        "from rltrain.rollout.worker import RolloutWorker, WorkerSpec\n"
        "worker = RolloutWorker(WorkerSpec('DQN', EnvSpec(id='CartPole-v1'), DQNConfig(), seed=0))\n"
        "worker.policy.learn_on_batch(worker.sample())\n"
        "assert 'torch._dynamo' not in sys.modules, 'the compiler takes seconds to import'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
