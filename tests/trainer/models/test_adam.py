"""Adam against torch's own."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from rltrain.api.errors import CheckpointMismatch
from rltrain.models.adam import Adam
from rltrain.models.flat import FlatParameters


def test_many_steps_move_as_torch_s_own_adam() -> None:
    torch.manual_seed(0)
    mine, theirs = nn.Linear(7, 3), nn.Linear(7, 3)
    theirs.load_state_dict(mine.state_dict())
    flat = FlatParameters(mine)
    adam, reference = Adam(flat, 1e-5), torch.optim.Adam(theirs.parameters(), eps=1e-5)
    for step in range(50):
        lr = 1e-2 / (step + 1)
        x = torch.randn(4, 7)
        flat.gradient.zero_()
        mine(x).square().sum().backward()
        adam.step(lr)
        reference.zero_grad()
        theirs(x).square().sum().backward()
        reference.param_groups[0]["lr"] = lr
        reference.step()
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
        "from rltrain.api.job import EnvSpec\n"
        "from rltrain.rollout.worker import RolloutWorker, WorkerSpec\n"
        "worker = RolloutWorker(WorkerSpec('DQN', EnvSpec(id='CartPole-v1'), DQNConfig(), seed=0))\n"
        "worker.policy.learn_on_batch(worker.sample())\n"
        "assert 'torch._dynamo' not in sys.modules, 'the compiler takes seconds to import'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
